use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio_postgres::Row;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use crate::clock::BootInstant;
use crate::config::Config;
use crate::endpoint::Endpoint;
use crate::error::{Kind, LimitsError, kind};
use crate::finish::Finish;
use crate::holds::Holds;
use crate::line::{Connection, Line};
use crate::lines::Lines;
use crate::metering;
use crate::permit::{Permit, Refusal, Scope};
use crate::registry::{self, ReplicaState};
use crate::release::{Release, Unknown};
use crate::statements;
use crate::turns::Turns;

/// How often one claim is sent again after the database rolled it back.
const TRIES: u32 = 4;

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
    turns: Turns,
    pub(crate) holds: Holds,
    tasks: TaskTracker,
    connections: TaskTracker,
    state: Mutex<ReplicaState>,
    is_closed: AtomicBool,
    releases_pending: AtomicI64,
    permits_unknown: AtomicI64,
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
        if self.inner.is_closed.load(Ordering::Acquire) {
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
    pub(crate) fn state(&self) -> ReplicaState {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn claim(
        inner: &Arc<Self>,
        endpoint: Endpoint,
        user: &str,
    ) -> Result<Claim, LimitsError> {
        let wait = tokio::time::timeout(inner.config.claim_timeout, inner.turns.wait(user)).await;
        let Ok(_turn) = wait else { return Err(LimitsError::Undecided) };
        let line = inner.lines.of_user(user).ok_or(LimitsError::Unavailable(None))?;
        let permit = Uuid::now_v7();
        // Read before the claim is sent: the local deadline never lies behind the database's.
        let claimed_at = BootInstant::now();
        let _busy = line.busy();
        for _ in 0..TRIES {
            let connection = inner.lines.open(line).await?;
            match inner.send_claim(&connection, permit, &endpoint, user).await {
                Sent::Answered(row) => {
                    return Self::read_claim(inner, &row, permit, endpoint, claimed_at);
                }
                Sent::Again => {}
                Sent::Lost(error) => {
                    line.retire(&connection).await;
                    Self::settle(inner, permit, &endpoint, &connection, claimed_at);
                    return Err(LimitsError::Unavailable(error));
                }
                Sent::Mend(mend) => inner.mend(line, &connection, mend, &endpoint).await?,
                Sent::Failed(error) => return Err(error),
            }
        }
        Err(LimitsError::Undecided)
    }

    async fn send_claim(
        &self,
        connection: &Connection,
        permit: Uuid,
        endpoint: &Endpoint,
        user: &str,
    ) -> Sent {
        let bound_ms = millis(endpoint.time_bound());
        let margin_ms = millis(self.config.margin);
        let name = endpoint.name();
        let answer = tokio::time::timeout(
            self.config.claim_timeout,
            connection.claim(&[&permit, &name, &user, &self.replica, &bound_ms, &margin_ms]),
        )
        .await;
        let error = match answer {
            Ok(Ok(row)) => return Sent::Answered(row),
            Ok(Err(error)) => error,
            Err(_elapsed) => return Sent::Lost(None),
        };
        match kind(&error) {
            Kind::TableLost => Sent::Mend(Mend::Table),
            Kind::Unregistered => Sent::Mend(Mend::Registration),
            Kind::Standby => Sent::Mend(Mend::Connection),
            Kind::RolledBack => Sent::Again,
            Kind::ConnectionLost => Sent::Lost(Some(error)),
            Kind::Other => Sent::Failed(LimitsError::Database(error)),
        }
    }

    async fn mend(
        &self,
        line: &Line,
        connection: &Arc<Connection>,
        mend: Mend,
        endpoint: &Endpoint,
    ) -> Result<(), LimitsError> {
        match mend {
            Mend::Table => {
                metering::repair();
                tracing::warn!("The permits' table was lost and is made anew");
                self.lines.query(&statements::REPAIR, &[]).await.map(drop)
            }
            Mend::Registration if registry::is_declared(self, endpoint) => {
                registry::register(self).await
            }
            Mend::Registration => Err(LimitsError::Config(format!(
                "endpoint `{}` was not declared in the limits' Config",
                endpoint.name()
            ))),
            Mend::Connection => {
                line.retire(connection).await;
                Ok(())
            }
        }
    }

    fn read_claim(
        inner: &Arc<Self>,
        row: &Row,
        permit: Uuid,
        endpoint: Endpoint,
        claimed_at: BootInstant,
    ) -> Result<Claim, LimitsError> {
        let failed = LimitsError::Database;
        let outcome: &str = row.try_get("outcome").map_err(failed)?;
        match outcome {
            "granted" => {
                let lapses_at = claimed_at + endpoint.time_bound() + inner.config.margin;
                let release = Release::new(
                    permit,
                    row.try_get("scope").map_err(failed)?,
                    row.try_get("slot").map_err(failed)?,
                    lapses_at,
                );
                Ok(Claim::Granted(Permit::new(Arc::clone(inner), endpoint, claimed_at, release)))
            }
            "refused" => {
                let scope: &str = row.try_get("scope").map_err(failed)?;
                let limit: i32 = row.try_get("cap").map_err(failed)?;
                let live: i32 = row.try_get("live").map_err(failed)?;
                let earliest_ms: Option<i64> = row.try_get("earliest_ms").map_err(failed)?;
                let retry_after = earliest_ms.map(|ms| {
                    let earliest = Duration::from_millis(u64::try_from(ms).unwrap_or(0));
                    inner.holds.retry_after(endpoint.name(), earliest)
                });
                Ok(Claim::Refused(Refusal {
                    endpoint: endpoint.name(),
                    scope: if scope == "user" { Scope::User } else { Scope::Installation },
                    limit: u32::try_from(limit).unwrap_or(0),
                    live: u32::try_from(live).unwrap_or(0),
                    retry_after,
                }))
            }
            _ => Err(LimitsError::Undecided),
        }
    }

    /// Hands a claim of unknown outcome to a task that finds out, and gives back what it finds.
    fn settle(
        inner: &Arc<Self>,
        permit: Uuid,
        endpoint: &Endpoint,
        connection: &Connection,
        claimed_at: BootInstant,
    ) {
        let unknown = Unknown {
            permit,
            backend: connection.backend,
            // A claim that arrives late writes a later end: twice the lease is beyond any of them.
            lapses_at: claimed_at + (endpoint.time_bound() + inner.config.margin) * 2,
        };
        let inner = Arc::clone(inner);
        let tracked = Arc::clone(&inner);
        inner.permits_unknown.fetch_add(1, Ordering::Relaxed);
        metering::unknown(1.0);
        inner.tasks.spawn(async move {
            unknown.settle(Arc::clone(&tracked)).await;
            tracked.permits_unknown.fetch_sub(1, Ordering::Relaxed);
            metering::unknown(-1.0);
        });
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

/// What became of one sending of a claim.
enum Sent {
    Answered(Row),
    /// Rolled back: nothing happened, and it may be sent again.
    Again,
    /// Something must be mended before it is sent again; nothing happened.
    Mend(Mend),
    /// Nobody knows whether it was granted.
    Lost(Option<tokio_postgres::Error>),
    Failed(LimitsError),
}

enum Mend {
    Table,
    Registration,
    Connection,
}

fn millis(length: Duration) -> i64 {
    i64::try_from(length.as_millis()).unwrap_or(i64::MAX)
}
