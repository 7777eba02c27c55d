use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::clock::BootInstant;
use crate::endpoint::Endpoint;
use crate::finish::Finish;
use crate::limits::Inner;
use crate::metering;
use crate::release::Release;
use crate::stops::{StopAsked, Stopped};

/// Whose limit a refusal names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// The user's own: of this endpoint, or half of the installation's.
    User,
    /// The installation's, which all heavy requests of all users share.
    Installation,
}

impl Scope {
    /// The word for it in JSON, SQL and metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Installation => "installation",
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A claim that would have exceeded a cap. Nothing was written for it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Refusal {
    /// The endpoint that was asked for.
    pub endpoint: &'static str,
    /// Whose limit was reached.
    pub scope: Scope,
    /// The limit that was reached.
    pub limit: u32,
    /// How many live permits one snapshot of the database showed: at least `limit`.
    pub live: u32,
    /// When to try again, jittered; none where the cap is zero.
    pub retry_after: Option<Duration>,
}

/// The work under a permit was stopped because it reached its endpoint's time bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("stopped at the time bound of endpoint `{endpoint}`")]
#[non_exhaustive]
pub struct BoundReached {
    /// The endpoint whose bound it was.
    pub endpoint: &'static str,
}

/// The right to run one heavy request until its time bound, counted on all replicas.
///
/// Keep it as long as the work runs, server-side work included, and no longer. Dropping it hands
/// the release to a task of the library; a replica that dies gives it back by its lease, which
/// ends at the time bound plus the margin.
#[must_use = "a permit that is dropped at once bounds nothing"]
pub struct Permit {
    inner: Arc<Inner>,
    endpoint: Endpoint,
    claimed_at: BootInstant,
    /// Taken by the release, whichever way it comes about.
    release: Option<Release>,
    shadow: Option<Refusal>,
    /// Cancelled when somebody asked for the work to stop.
    asked: CancellationToken,
}

impl fmt::Debug for Permit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permit")
            .field("id", &self.id())
            .field("endpoint", &self.endpoint.name())
            .finish_non_exhaustive()
    }
}

impl Permit {
    pub(crate) fn new(
        inner: Arc<Inner>,
        endpoint: Endpoint,
        claimed_at: BootInstant,
        release: Release,
        shadow: Option<Refusal>,
    ) -> Self {
        metering::grant(endpoint.name());
        let asked = inner.held.begin(release.permit());
        Self { inner, endpoint, claimed_at, release: Some(release), shadow, asked }
    }

    /// The id of the permit's row.
    pub fn id(&self) -> Uuid {
        self.release.as_ref().map_or(Uuid::nil(), Release::permit)
    }

    /// The endpoint it was claimed for.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// The refusal that the endpoint's shadow mode held back: the user's cap was reached when this
    /// permit was granted. It says nothing of when to come back.
    pub fn would_have_been_refused(&self) -> Option<&Refusal> {
        self.shadow.as_ref()
    }

    /// When the work must have ended, by a clock that goes on while the process is stopped. Set
    /// before the claim was sent, so it never lies behind the end that the database wrote.
    pub fn bound(&self) -> BootInstant {
        self.claimed_at + self.endpoint.time_bound()
    }

    /// How long the work may still run; zero at its bound.
    pub fn remaining(&self) -> Duration {
        self.bound().remaining()
    }

    /// Waits for the time bound.
    ///
    /// # Cancel safety
    ///
    /// Safe: dropping the future only stops the wait.
    pub async fn bound_reached(&self) -> BoundReached {
        self.bound().reached().await;
        BoundReached { endpoint: self.endpoint.name() }
    }

    /// Waits until somebody asks for the work to stop ([`crate::HeavyRequests::stop`]): end it, then
    /// give the permit back. Heard within about half a second, on whichever replica it was asked.
    ///
    /// # Cancel safety
    ///
    /// Safe: dropping the future only stops the wait, and what was asked once stays asked.
    pub async fn stop_asked(&self) -> StopAsked {
        self.asked.cancelled().await;
        StopAsked { endpoint: self.endpoint.name() }
    }

    /// Whether somebody has asked for the work to stop.
    pub fn is_stop_asked(&self) -> bool {
        self.asked.is_cancelled()
    }

    /// Waits for the time bound, or until somebody asks for the work to stop.
    ///
    /// # Cancel safety
    ///
    /// Safe: dropping the future only stops the wait.
    pub async fn stopped(&self) -> Stopped {
        self.stop().await
    }

    /// What [`Permit::stopped`] waits for, without the permit.
    pub(crate) fn stop(&self) -> impl Future<Output = Stopped> + Send + use<> {
        let (bound, asked, endpoint) = (self.bound(), self.asked.clone(), self.endpoint.name());
        async move {
            tokio::select! {
                biased;
                () = bound.reached() => BoundReached { endpoint }.into(),
                () = asked.cancelled() => StopAsked { endpoint }.into(),
            }
        }
    }

    /// Runs work that ends when it is dropped, and drops it at the time bound, or when somebody asks for
    /// it to stop.
    ///
    /// Work that goes on elsewhere when its future is dropped (a query on a server) must be stopped
    /// there first: wait for [`Permit::stopped`] beside it, cancel it, see it end.
    ///
    /// # Errors
    ///
    /// [`Stopped`] when the work was dropped, and why.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the work; the permit stays.
    pub async fn run<F: Future>(&self, work: F) -> Result<F::Output, Stopped> {
        tokio::select! {
            biased;
            stopped = self.stopped() => Err(stopped),
            output = work => Ok(output),
        }
    }

    /// Gives the permit back and waits until the database has it, or the lease has ended.
    ///
    /// # Cancel safety
    ///
    /// Safe: the release goes on without the caller.
    pub async fn release(mut self) {
        if let Some(release) = self.take_release() {
            release.await;
        }
    }

    fn take_release(&mut self) -> Option<Finish<()>> {
        let release = self.release.take()?;
        self.inner.held.end(release.permit());
        let held = self.claimed_at.elapsed();
        self.inner.holds.record(self.endpoint.name(), held);
        metering::end(self.endpoint.name(), held);
        Some(self.inner.release(release))
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        // What nobody waits for goes to a task of the library's own.
        drop(self.take_release());
    }
}
