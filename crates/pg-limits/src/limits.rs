use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use crate::config::Config;
use crate::error::LimitsError;
use crate::finish::Finish;
use crate::gate::Gate;
use crate::gate::company::Company;
use crate::heavy_requests::HeavyRequests;
use crate::holds::Holds;
use crate::lines::Lines;
use crate::metering;
use crate::ready_replicas::ReadyReplicas;
use crate::registry::{self, ReplicaState};
use crate::release::Release;
use crate::statements;
use crate::stops::{self, Held};
use crate::throttle::Queues;
use crate::turns::Turns;

/// One replica's connection to the limits that all replicas share in one PostgreSQL database.
///
/// Every kind of limit is reached through it. Cheap to clone; all clones share a few connections of
/// their own, and one place in the registry of replicas.
#[derive(Clone)]
pub struct Limits {
    pub(crate) inner: Arc<Inner>,
}

impl fmt::Debug for Limits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Limits").field("replica", &self.inner.replica).finish_non_exhaustive()
    }
}

pub(crate) struct Inner {
    pub(crate) config: Arc<Config>,
    pub(crate) lines: Lines,
    pub(crate) replica: Uuid,
    pub(crate) shutdown: CancellationToken,
    pub(crate) turns: Turns,
    /// One a line.
    pub(crate) gates: Vec<Gate>,
    pub(crate) company: Company,
    pub(crate) ready: ReadyReplicas,
    /// Where tasks run that begin when something is dropped, wherever that is.
    pub(crate) runtime: Handle,
    pub(crate) holds: Holds,
    pub(crate) held: Held,
    pub(crate) queues: Queues,
    pub(crate) tasks: TaskTracker,
    connections: TaskTracker,
    state: Mutex<ReplicaState>,
    is_closed: AtomicBool,
    pub(crate) releases_pending: AtomicI64,
    pub(crate) permits_unknown: AtomicI64,
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inner").field("replica", &self.replica).finish_non_exhaustive()
    }
}

impl Limits {
    /// Connects to the limits' database and registers this replica with the caps it was built with.
    ///
    /// # Errors
    ///
    /// [`LimitsError::Config`] for a wrong setting, [`LimitsError::Unavailable`] where the database
    /// cannot be reached or is a standby, [`LimitsError::Database`] where the schema is missing.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future may leave a registration that is counted as gone after 15 s.
    pub async fn connect(config: Config) -> Result<Self, LimitsError> {
        config.check()?;
        let config = Arc::new(config);
        let connections = TaskTracker::new();
        let inner = Arc::new(Inner {
            lines: Lines::new(Arc::clone(&config), connections.clone()),
            replica: Uuid::now_v7(),
            shutdown: CancellationToken::new(),
            turns: Turns::default(),
            gates: (0..config.connections).map(|_| Gate::default()).collect(),
            company: Company::default(),
            ready: ReadyReplicas::default(),
            runtime: Handle::current(),
            holds: Holds::default(),
            held: Held::default(),
            queues: Queues::default(),
            tasks: TaskTracker::new(),
            connections,
            state: Mutex::new(ReplicaState::Starting),
            config,
            is_closed: AtomicBool::new(false),
            releases_pending: AtomicI64::new(0),
            permits_unknown: AtomicI64::new(0),
        });
        registry::register(&inner).await?;
        // The connections' tracker also keeps what runs until shutdown: releases must not wait for it.
        inner.connections.spawn(registry::keep(Arc::clone(&inner)));
        inner.connections.spawn(stops::watch(Arc::clone(&inner)));
        Ok(Self { inner })
    }

    /// The permits of heavy requests.
    pub fn heavy_requests(&self) -> HeavyRequests {
        HeavyRequests::new(self.clone())
    }

    /// The id under which this replica registered.
    pub fn replica(&self) -> Uuid {
        self.inner.replica
    }

    /// Says what state this replica is in, at once.
    ///
    /// # Errors
    ///
    /// When the limits' database cannot be asked; the next heartbeat says it then.
    ///
    /// # Cancel safety
    ///
    /// The state is kept, and told by the next heartbeat at the latest.
    pub async fn set_state(&self, state: ReplicaState) -> Result<(), LimitsError> {
        *self.inner.state.lock().unwrap_or_else(PoisonError::into_inner) = state;
        registry::heartbeat(&self.inner).await
    }

    /// Ends in good order: no more claims, releases under way brought to their end, and whatever
    /// this replica still holds given back. Call it when the work has ended. At most `patience`
    /// long; the leases do what is left.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves the rest to the leases.
    pub async fn shutdown(&self, patience: Duration) {
        self.inner.is_closed.store(true, Ordering::Release);
        self.inner.shutdown.cancel();
        self.inner.tasks.close();
        let ended = async {
            self.inner.tasks.wait().await;
            let freed =
                self.inner.lines.query(&statements::RELEASE_REPLICA, &[&self.inner.replica]).await;
            let stopped = self.set_state(ReplicaState::Stopped).await;
            freed.map(drop).and(stopped)
        };
        match tokio::time::timeout(patience, ended).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "The limits were left to their leases"),
            Err(_elapsed) => tracing::warn!("The limits were left to their leases"),
        }
    }
}

impl Inner {
    /// Whether the shutdown has begun, after which nothing new is let in.
    pub(crate) fn check_open(&self) -> Result<(), LimitsError> {
        if self.is_closed.load(Ordering::Acquire) {
            return Err(LimitsError::ShuttingDown);
        }
        Ok(())
    }

    pub(crate) fn state(&self) -> ReplicaState {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A release that goes on to its end even when nobody waits for it.
    pub(crate) fn release(self: &Arc<Self>, release: Release) -> Finish<()> {
        self.releases_pending.fetch_add(1, Ordering::Relaxed);
        metering::pending(1.0);
        let inner = Arc::clone(self);
        Finish::new(&self.tasks, async move {
            release.run(Arc::clone(&inner)).await;
            inner.releases_pending.fetch_sub(1, Ordering::Relaxed);
            metering::pending(-1.0);
        })
    }
}
