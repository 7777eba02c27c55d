use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::config::Config;
use crate::endpoint::Endpoint;
use crate::error::LimitsError;
use crate::finish::Finish;
use crate::limits::{Inner, Limits};
use crate::metering;
use crate::permit::{Permit, Refusal};

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
/// Cheap to clone. It is the [`Limits`] it came from, and adds what concerns permits.
#[derive(Clone, Debug)]
pub struct HeavyRequests {
    limits: Limits,
}

impl Deref for HeavyRequests {
    type Target = Limits;

    fn deref(&self) -> &Limits {
        &self.limits
    }
}

impl HeavyRequests {
    pub(crate) fn new(limits: Limits) -> Self {
        Self { limits }
    }

    /// Connects as [`Limits::connect`] does, for a service that needs permits alone.
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
    /// Those of [`Limits::connect`].
    ///
    /// # Cancel safety
    ///
    /// Dropping the future may leave a registration that is counted as gone after 15 s.
    pub async fn connect(config: Config) -> Result<Self, LimitsError> {
        Limits::connect(config).await.map(Self::new)
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
        self.inner.check_open()?;
        let (inner, endpoint, user) = (Arc::clone(&self.inner), *endpoint, user.to_owned());
        Finish::new(&self.inner.tasks, async move {
            let outcome = Inner::claim(&inner, endpoint, &user).await;
            metering::claim(endpoint.name(), &outcome);
            // Of a caller that left, this drops the permit, and with it goes the release.
            outcome
        })
        .await
    }

    /// How many releases the database has not answered yet.
    pub fn releases_pending(&self) -> i64 {
        self.inner.releases_pending.load(Ordering::Relaxed)
    }

    /// How many claims lost their answer and are not settled yet.
    pub fn permits_unknown(&self) -> i64 {
        self.inner.permits_unknown.load(Ordering::Relaxed)
    }
}
