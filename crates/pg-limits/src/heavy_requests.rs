use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use crate::config::Config;
use crate::endpoint::Endpoint;
use crate::error::LimitsError;
use crate::finish::Finish;
use crate::holds::Holds;
use crate::lines::Lines;
use crate::metering;
use crate::permit::{Permit, Refusal};
use crate::registry::{self, ReplicaState};
use crate::release::Release;
use crate::statements;
use crate::throttle::Queues;
use crate::turns::Turns;

/// What a claim came to. A refusal is an answer, not an error.
#[derive(Debug)]
#[must_use = "a granted permit that is dropped at once bounds nothing"]
pub enum Claim {
    /// The work may run until the permit's bound.
    Granted(Permit),
    /// A cap is reached.
    Refused(Refusal),
}

/// Concurrency permits for heavy requests, counted over all replicas in one PostgreSQL database.
///
/// Cheap to clone; all clones share a few connections of their own.
#[derive(Clone)]
pub struct HeavyRequests {
    pub(crate) inner: Arc<Inner>,
}

impl fmt::Debug for HeavyRequests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HeavyRequests")
            .field("replica", &self.inner.replica)
            .finish_non_exhaustive()
    }
}

pub(crate) struct Inner {
    pub(crate) config: Arc<Config>,
    pub(crate) lines: Lines,
    pub(crate) replica: Uuid,
    pub(crate) shutdown: CancellationToken,
    pub(crate) turns: Turns,
    pub(crate) holds: Holds,
    pub(crate) queues: Queues,
    pub(crate) tasks: TaskTracker,
    connections: TaskTracker,
    state: Mutex<ReplicaState>,
    is_closed: AtomicBool,
    releases_pending: AtomicI64,
    pub(crate) permits_unknown: AtomicI64,
}

impl HeavyRequests {
    /// Connects to the limits' database and registers this replica with the caps it was built with.
    ///
    /// ```no_run
    /// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::time::Duration;
    /// use pg_limits::{Claim, Config, Endpoint, HeavyRequests};
    ///
    /// const REPORT: Endpoint = Endpoint::new("report", 2, Duration::from_secs(30));
    ///
    /// let database = "host=/run/postgresql dbname=my_limits".parse()?;
    /// let heavy = HeavyRequests::connect(Config::new(database, 8, &[REPORT])).await?;
    /// match heavy.claim(&REPORT, "user-7").await? {
    ///     Claim::Granted(permit) => {
    ///         let report = permit.run(async { "the heavy work" }).await?;
    ///         permit.release().await;
    ///         println!("{report}");
    ///     }
    ///     Claim::Refused(refusal) => println!("{} is at its limit", refusal.scope),
    /// }
    /// # Ok(()) }
    /// ```
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
            config,
            replica: Uuid::now_v7(),
            shutdown: CancellationToken::new(),
            turns: Turns::default(),
            holds: Holds::default(),
            queues: Queues::default(),
            tasks: TaskTracker::new(),
            connections,
            state: Mutex::new(ReplicaState::Starting),
            is_closed: AtomicBool::new(false),
            releases_pending: AtomicI64::new(0),
            permits_unknown: AtomicI64::new(0),
        });
        registry::register(&inner).await?;
        // The connections' tracker also keeps the heartbeat: releases must not wait for it to end.
        inner.connections.spawn(registry::keep(Arc::clone(&inner)));
        Ok(Self { inner })
    }

    /// Claims a permit for one request of `user`, in one round trip.
    ///
    /// `user` is what the limit counts by: an id that never changes and is not empty, the same for
    /// every way in which that user comes.
    ///
    /// # Errors
    ///
    /// [`LimitsError::Unavailable`] and [`LimitsError::Undecided`]: answer 503 and never admit.
    ///
    /// # Cancel safety
    ///
    /// Safe: a claim whose caller has gone goes on to its end, and what it was granted is released.
    pub async fn claim(&self, endpoint: &Endpoint, user: &str) -> Result<Claim, LimitsError> {
        if self.inner.is_closed() {
            return Err(LimitsError::ShuttingDown);
        }
        let (inner, endpoint, user) = (Arc::clone(&self.inner), *endpoint, user.to_owned());
        Finish::new(&self.inner.tasks, async move {
            let outcome = Inner::claim(&inner, endpoint, &user).await;
            metering::claim(endpoint.name(), &outcome);
            // Of a caller that left, this drops the permit, and with it goes the release.
            outcome
        })
        .await
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

    /// How many releases the database has not answered yet.
    pub fn releases_pending(&self) -> i64 {
        self.inner.releases_pending.load(Ordering::Relaxed)
    }

    /// How many claims lost their answer and are not settled yet.
    pub fn permits_unknown(&self) -> i64 {
        self.inner.permits_unknown.load(Ordering::Relaxed)
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
    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
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
