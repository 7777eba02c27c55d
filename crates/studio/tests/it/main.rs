//! Studio from outside: real PostgreSQL, real processes, requests over the network.

mod access;
mod bed;
mod commands;
mod export;
mod history;
mod routes;
mod shutdown;
mod sign_in;
mod sql_console;
