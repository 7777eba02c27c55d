//! The test bed tried on real processes, sockets and PostgreSQL.

mod proxy;
mod replica;
mod wait;
