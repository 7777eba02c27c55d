#![doc = include_str!("../README.md")]
#![warn(missing_docs, clippy::missing_errors_doc)]

mod call;
mod claim;
mod clock;
mod config;
mod count;
mod endpoint;
mod enter;
mod error;
mod finish;
mod gate;
mod heavy_requests;
mod holds;
mod in_flight;
mod limits;
mod line;
mod lines;
mod metering;
mod migrate;
mod observe;
mod permit;
mod rate_share;
mod ready_replicas;
mod registry;
mod release;
mod schema;
mod statements;
mod stops;
mod throttle;
mod turns;
mod window;

#[cfg(feature = "tower")]
mod admitted_body;
#[cfg(feature = "tower")]
mod body;
#[cfg(feature = "tower")]
mod layer;
#[cfg(feature = "tower")]
mod problem;

pub use clock::BootInstant;
pub use config::{Config, Statements};
pub use count::{Count, Counted};
pub use endpoint::Endpoint;
pub use enter::{Admitted, Entry};
pub use error::LimitsError;
pub use heavy_requests::{Claim, HeavyRequests};
pub use in_flight::InFlight;
pub use limits::Limits;
pub use migrate::{MigrateError, grant, migrate};
pub use observe::{CapInForce, Holder, Replica};
pub use permit::{BoundReached, Permit, Refusal, Scope};
pub use rate_share::{Pass, RateShare};
pub use registry::ReplicaState;
pub use stops::{Stop, StopAsked, Stopped};
pub use throttle::{Attempt, Attempted, Throttle, Throttled};
pub use window::{LimitReached, Window, WindowState};

#[cfg(feature = "tower")]
pub use admitted_body::AdmittedBody;
#[cfg(feature = "tower")]
pub use body::PermitBody;
#[cfg(feature = "tower")]
pub use layer::{HeavyBody, HeavyRequestLayer, HeavyRequestService};
#[cfg(feature = "tower")]
pub use problem::Problem;
