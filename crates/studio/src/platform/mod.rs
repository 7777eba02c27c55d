//! What features stand on: databases, access, audit, problems, routes, bounded work.

pub mod access;
pub mod account;
pub mod api_requests;
pub mod audit;
pub mod bus;
pub mod client_address;
pub mod database;
pub mod heavy;
pub mod in_force;
pub mod listener;
pub mod login_attempt;
pub mod paging;
pub mod problem;
pub mod refusals;
pub mod request;
pub mod route;
pub mod schema;
pub mod session;
pub mod telemetry;
pub mod timestamp;
pub mod token;
pub mod work;
