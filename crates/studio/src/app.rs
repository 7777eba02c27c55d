//! The application: its shared state, and the router built from the route table.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use crate::platform::audit::AuditTrail;
use crate::platform::database::Pools;
use crate::platform::heavy::HeavyRequests;
use crate::settings::Settings;

/// What every handler may use. Clones share everything.
#[derive(Debug, Clone)]
pub struct App {
    /// The settings this replica was started with.
    pub settings: Arc<Settings>,
    /// Connections to Studio's database.
    pub pools: Pools,
    /// The limits on heavy requests, shared by all replicas.
    pub heavy: HeavyRequests,
    /// The audit trail.
    pub audit: AuditTrail,
    /// Work that outlives its handler; awaited at shutdown.
    pub tasks: TaskTracker,
    /// Cancelled when this replica begins to shut down.
    pub shutdown: CancellationToken,
    /// Cancelled when this replica has no more time to let heavy work finish.
    pub stop_work: CancellationToken,
    /// This replica's id, new at every start.
    pub replica: Uuid,
}
