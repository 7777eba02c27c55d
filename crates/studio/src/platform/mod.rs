//! What features stand on: databases, access, audit, problems, routes, bounded work.

pub mod access;
pub mod audit;
pub mod database;
pub mod heavy;
pub mod problem;
pub mod request;
pub mod route;
pub mod work;
