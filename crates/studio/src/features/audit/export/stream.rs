//! The task behind an export: read a piece, give the connection back, hand the piece over, and tell how it ended.

use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::super::EXPORT;
use super::super::filter::{Filter, PLAN};
use super::body::{Piece, Progress};
use super::format::Format;
use super::pieces::{self, End, PIECE_BYTES, Place, Read, Settled};
use crate::app::App;
use crate::platform::access::SignedIn;
use crate::platform::audit::{Action, Bound, OpenEvent, Outcome};
use crate::platform::heavy::{self, Permit};
use crate::platform::problem::Problem;
use crate::platform::work::{Bounds, Ended, STOPPED_BY_ADMINISTRATOR};

/// How long after the time bound the mark has to leave.
const MARK: Duration = Duration::from_secs(10);

const SETTLED: &str = include_str!("../queries/settled.sql");

/// One export. It belongs to the application, not to its handler: it goes on until its query has ended, its outcome
/// is written and its permit released, whatever its client does.
#[derive(Debug)]
pub(super) struct Export {
    pub(super) app: App,
    pub(super) who: SignedIn,
    pub(super) filter: Filter,
    pub(super) format: Format,
    /// Cancelled when the client leaves or the replica has no more time.
    pub(super) left: CancellationToken,
    pub(super) sender: mpsc::Sender<Piece>,
    pub(super) progress: Arc<Progress>,
}

/// Why an export stopped without an end of its own.
#[derive(Debug)]
enum Broken {
    ClientLeft,
    Failed(&'static str, Problem),
}

impl Export {
    /// Runs to the end; `begun` tells the handler whether there is a file to answer with.
    pub(super) async fn run(
        self,
        asked: serde_json::Value,
        begun: oneshot::Sender<Result<(), Problem>>,
    ) {
        let claimed = heavy::claim(&self.app, &EXPORT, &self.who.user()).await;
        let permit = match claimed {
            Ok(permit) => permit,
            Err(problem) => return tell(begun, Err(problem)),
        };
        let bound = permit.endpoint().time_bound();
        let opened =
            self.app.audit.begin(&self.who, Action::AuditExport, "audit", asked, bound).await;
        let event = match opened {
            Ok(event) => event,
            Err(problem) => return tell(begun, Err(problem)),
        };
        let deadline = tokio::time::Instant::now() + permit.remaining();
        let progress = Arc::clone(&self.progress);
        let outcome = match self.stream(&permit, deadline, begun).await {
            Ok((End::Complete, rows)) => Outcome::Complete { rows },
            Ok((End::Cut(bound), rows)) => Outcome::Partial { bound, rows },
            Err(broken) => {
                // Nothing that waits to be taken goes out without a permit.
                progress.break_off();
                let rows = progress.rows();
                match broken {
                    Broken::ClientLeft => Outcome::AbortedByClient { rows },
                    Broken::Failed(reason, _) => Outcome::Failed { reason, rows },
                }
            }
        };
        finish(event, outcome, permit).await;
    }

    /// Streams the file; gives why it ended and how many events it has, once the connection has taken it all.
    async fn stream(
        self,
        permit: &Permit,
        deadline: tokio::time::Instant,
        begun: oneshot::Sender<Result<(), Problem>>,
    ) -> Result<(End, u64), Broken> {
        // What goes wrong before the first piece is a problem; after it, only a broken file can tell.
        let first = self.first_piece(permit, deadline).await;
        let (mut read, mut is_first) = match first {
            Ok(read) => {
                tell(begun, Ok(()));
                (read, true)
            }
            Err(Broken::Failed(reason, problem)) => {
                tell(begun, Err(problem.clone()));
                return Err(Broken::Failed(reason, problem));
            }
            Err(broken) => return Err(broken),
        };
        let mut total = 0;
        loop {
            // Nothing was read within the bound: the file ends here, with its mark.
            let Some(Read { bytes, rows, place, end }) = read.take() else {
                let mut bytes = BytesMut::new();
                if is_first {
                    self.format.begin(&mut bytes);
                }
                return self.end(permit, bytes, 0, End::Cut(Bound::Time), total, deadline).await;
            };
            if let Some(end) = end {
                return self.end(permit, bytes, rows, end, total, deadline).await;
            }
            if rows > 0 || is_first {
                let piece = Piece { bytes: bytes.freeze(), rows, is_last: false };
                // Room for this piece means that the connection takes the one before.
                let sent = tokio::select! {
                    biased;
                    () = self.left.cancelled() => return Err(self.left()),
                    _ = permit.stop_asked() => return Err(evicted()),
                    sent = tokio::time::timeout_at(deadline, self.sender.send(piece)) => sent,
                };
                match sent {
                    Ok(Ok(())) => total += rows,
                    Ok(Err(_)) => return Err(self.left()),
                    // The client did not read: the piece is left out, and the mark has its time to leave.
                    Err(_) => {
                        let end = End::Cut(Bound::Time);
                        return self.end(permit, BytesMut::new(), 0, end, total, deadline).await;
                    }
                }
            }
            is_first = false;
            read = self.read(permit, deadline, place, BytesMut::with_capacity(PIECE_BYTES)).await?;
        }
    }

    async fn first_piece(
        &self,
        permit: &Permit,
        deadline: tokio::time::Instant,
    ) -> Result<Option<Read>, Broken> {
        let settled = self.settled().await.map_err(failed)?;
        let endpoint = permit.endpoint();
        let rows = endpoint.row_cap().unwrap_or(u64::MAX);
        let bytes = endpoint.byte_cap().unwrap_or(u64::MAX);
        let place = Place::new(&self.filter, settled, rows, bytes);
        let mut bytes = BytesMut::with_capacity(PIECE_BYTES);
        self.format.begin(&mut bytes);
        self.read(permit, deadline, place, bytes).await
    }

    /// What can be read now and changes no more.
    async fn settled(&self) -> Result<Settled, Problem> {
        let connection = self.app.pools.main().await?;
        let statement = connection.prepare_cached(SETTLED).await?;
        let row = connection.query_one(&statement, &[]).await?;
        let (horizon, next) = (row.try_get("horizon")?, row.try_get("next")?);
        Ok(Settled { horizon, next, began: row.try_get("began")? })
    }

    /// Reads the next piece on a connection of its own; nothing when the time bound came first.
    async fn read(
        &self,
        permit: &Permit,
        deadline: tokio::time::Instant,
        place: Place,
        bytes: BytesMut,
    ) -> Result<Option<Read>, Broken> {
        let remaining = deadline.saturating_duration_since(tokio::time::Instant::now());
        if remaining.is_zero() {
            return Ok(None);
        }
        let connection = self.app.pools.main().await.map_err(|error| failed(error.into()))?;
        let bounds = Bounds {
            permit,
            at_most: Some(remaining),
            left: &self.left,
            terminator: &self.app.pools.main,
            set_local: PLAN,
        };
        let (filter, format) = (self.filter.clone(), self.format);
        let (ended, connection) = bounds
            .run(connection, |connection| {
                Box::pin(
                    async move { pieces::read(connection, &filter, format, place, bytes).await },
                )
            })
            .await;
        // Given back before anything is sent.
        drop(connection);
        match ended {
            Ended::Done(read) => Ok(Some(read)),
            Ended::TimeBound => Ok(None),
            Ended::ClientLeft => Err(self.left()),
            Ended::Administrator if permit.is_stop_asked() => Err(evicted()),
            Ended::Administrator => {
                Err(Broken::Failed("stopped in the database", Problem::query_stopped()))
            }
            ended @ (Ended::RecoveryConflict | Ended::Failed(_)) => {
                ended.done(permit.endpoint()).map(Some).map_err(failed)
            }
        }
    }

    /// Hands over the last piece with its mark and waits until the connection has taken it.
    #[expect(clippy::too_many_arguments, reason = "what the last piece is made of")]
    async fn end(
        &self,
        permit: &Permit,
        mut bytes: BytesMut,
        rows: u64,
        end: End,
        total: u64,
        deadline: tokio::time::Instant,
    ) -> Result<(End, u64), Broken> {
        let total = total + rows;
        let why = match end {
            End::Complete => "COMPLETE",
            End::Cut(bound) => bound.name(),
        };
        self.format.end(why, total, &mut bytes);
        let piece = Piece { bytes: bytes.freeze(), rows, is_last: true };
        let taken = async {
            self.sender.send(piece).await.ok();
            std::future::pending::<()>().await;
        };
        tokio::select! {
            biased;
            // The body is dropped when the connection has its last byte, or is gone, and its token with it; a replica
            // that has no more time cancels the token too.
            () = self.left.cancelled() => {}
            _ = permit.stop_asked() => {}
            // An end before the bound also has until the bound to leave.
            _ = tokio::time::timeout_at(deadline + MARK, taken) => {
                tracing::info!("An export's client did not take its end in time");
            }
        }
        match self.progress.break_off() {
            false => Ok((end, total)),
            true if permit.is_stop_asked() => Err(evicted()),
            true => Err(self.left()),
        }
    }

    /// Why this export was left: by its client, or by a replica that shuts down.
    fn left(&self) -> Broken {
        if self.app.stop_work.is_cancelled() {
            Broken::Failed("replica shut down", Problem::draining())
        } else {
            Broken::ClientLeft
        }
    }
}

/// The outcome first, then the permit.
async fn finish(event: OpenEvent, outcome: Outcome, permit: Permit) {
    event.finish(outcome).await;
    permit.release().await;
}

fn evicted() -> Broken {
    Broken::Failed(STOPPED_BY_ADMINISTRATOR, Problem::query_stopped())
}

fn failed(problem: Problem) -> Broken {
    Broken::Failed("database", problem)
}

fn tell(begun: oneshot::Sender<Result<(), Problem>>, what: Result<(), Problem>) {
    // A handler that is gone has dropped the token too, which ends the export.
    begun.send(what).ok();
}
