//! Studio as its users meet it: real processes over a real PostgreSQL.

mod installation;
mod sql_console;
