//! Bounded database work: runs under a deadline, stops when its client leaves, and tells why it ended.
//!
//! A heavy request is an owned task ([`owned`]), because a handler's future is dropped as soon as its client
//! disconnects, and a query must be stopped and drained before its permit is released.

use std::convert::Infallible;
use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use deadpool_postgres::{Object, Pool};
use futures_util::future::BoxFuture;
use tokio_postgres::{Client, NoTls, SimpleQueryMessage};
use tokio_util::sync::CancellationToken;

use super::heavy::{Endpoint, Permit};
use super::problem::Problem;
use crate::app::App;

/// How long a cancelled query may take to end before its backend is terminated.
const DRAIN: Duration = Duration::from_secs(5);

/// How long a cancel has to show before it is sent again: PostgreSQL drops one that finds no statement running, as between
/// two messages of one query, and the next statement would run on.
const CANCEL_AGAIN: Duration = Duration::from_millis(100);

/// How much later than our own deadline the server stops a statement by itself, should our cancel not arrive.
const BACKSTOP: Duration = Duration::from_secs(1);

/// A connection that bounded work runs on.
pub trait WorkConnection: Send + Sync {
    /// The connection itself.
    fn client(&self) -> &Client;
    /// Closes it, so that a late cancel cannot hit another borrower.
    fn close(self);
}

impl WorkConnection for Object {
    fn client(&self) -> &Client {
        self
    }

    fn close(self) {
        drop(Self::take(self));
    }
}

impl WorkConnection for Client {
    fn client(&self) -> &Client {
        self
    }

    fn close(self) {}
}

/// How bounded work ended. Told by our own state and the SQLSTATE, never by a message's text.
#[derive(Debug)]
pub enum Ended<T> {
    /// By itself.
    Done(T),
    /// Stopped at its time bound.
    TimeBound,
    /// Stopped because its client left, or because this replica shuts down.
    ClientLeft,
    /// Stopped by an administrator, through its permit or in the database.
    Administrator,
    /// Stopped by the recovery of a standby.
    RecoveryConflict,
    /// The database refused it, or the connection broke.
    Failed(tokio_postgres::Error),
}

impl<T> Ended<T> {
    /// What the work gave, or the problem to answer with while nothing has been sent.
    ///
    /// # Errors
    /// Unless the work ended by itself.
    pub fn done(self, endpoint: &Endpoint) -> Result<T, Problem> {
        match self {
            Self::Done(value) => Ok(value),
            Self::TimeBound => Err(Problem::timed_out(endpoint)),
            // Only a replica that shuts down still has somebody to tell.
            Self::ClientLeft => Err(Problem::draining()),
            Self::Administrator => Err(Problem::query_stopped()),
            Self::RecoveryConflict => {
                Err(Problem::database_unavailable(&"a conflict with recovery"))
            }
            Self::Failed(error) => Err(error.into()),
        }
    }
}

/// What the trail says of work that was stopped through its permit.
pub const STOPPED_BY_ADMINISTRATOR: &str = "stopped by administrator";

#[derive(Debug, Clone, Copy)]
enum Stop {
    TimeBound,
    ClientLeft,
    Administrator,
}

/// Whether work was stopped, and how it took that.
#[derive(Debug, Clone, Copy)]
enum Stopped {
    Not,
    /// It ended in time, and the server said so.
    Obeyed,
    /// It did not end in time.
    Deaf,
}

/// What bounds one piece of work.
#[derive(Debug)]
pub struct Bounds<'a> {
    /// The permit, whose time bound is the deadline.
    pub permit: &'a Permit,
    /// An earlier deadline than the permit's, measured from now.
    pub at_most: Option<Duration>,
    /// Cancelled when the client has left.
    pub left: &'a CancellationToken,
    /// Where a connection comes from that terminates a backend which does not obey.
    pub terminator: &'a Pool,
    /// Settings of the transaction, each ending in a semicolon (`set local work_mem = '8MB';`). Constant text only.
    pub set_local: &'static str,
}

impl Bounds<'_> {
    fn remaining(&self) -> Duration {
        let permit = self.permit.remaining();
        self.at_most.map_or(permit, |at_most| at_most.min(permit))
    }

    async fn stop(&self) -> Stop {
        let reached = async {
            match self.at_most {
                Some(wait) => tokio::select! {
                    _ = self.permit.bound_reached() => {}
                    () = tokio::time::sleep(wait) => {}
                },
                None => drop(self.permit.bound_reached().await),
            }
        };
        tokio::select! {
            biased;
            () = self.left.cancelled() => Stop::ClientLeft,
            _ = self.permit.stop_asked() => Stop::Administrator,
            () = reached => Stop::TimeBound,
        }
    }

    /// Runs `body` in a read-only transaction on `connection`, and gives the connection back when it may be used
    /// again: whenever work was stopped or failed, it is closed instead.
    ///
    /// When this returns the work has ended in the database too, or its backend was told to terminate. `body` must
    /// only read into memory: a row stream polled at the speed of an HTTP client could not be drained.
    ///
    /// # Cancel safety
    /// Not cancel safe: call it from a task that is never dropped ([`owned`]).
    pub async fn run<C, T, F>(&self, connection: C, body: F) -> (Ended<T>, Option<C>)
    where
        C: WorkConnection,
        F: for<'c> FnOnce(&'c C) -> BoxFuture<'c, Result<T, tokio_postgres::Error>> + Send,
    {
        let (backend, backend_known) = tokio::sync::oneshot::channel();
        let (ended, how) = {
            let mut work = pin!(self.transaction(&connection, backend, body));
            tokio::select! {
                biased;
                result = &mut work => (self.told(result, None), Stopped::Not),
                stop = self.stop() => {
                    // Keeps reading while cancels are on their way: a backend blocked on sending cannot obey.
                    let drained = async {
                        tokio::select! {
                            result = &mut work => result,
                            never = cancel(connection.client()) => match never {},
                        }
                    };
                    match tokio::time::timeout(DRAIN, drained).await {
                        Ok(result) => (self.told(result, Some(stop)), Stopped::Obeyed),
                        Err(_) => (stopped(stop), Stopped::Deaf),
                    }
                }
            }
        };
        match (&ended, how) {
            (Ended::Done(_), Stopped::Not) => return (ended, Some(connection)),
            // While the connection is open the backend keeps its number, so that nobody else is hit.
            (_, Stopped::Deaf) => self.terminate(backend_known).await,
            (_, Stopped::Not | Stopped::Obeyed) => {}
        }
        connection.close();
        (ended, None)
    }

    async fn transaction<C, T, F>(
        &self,
        connection: &C,
        backend: tokio::sync::oneshot::Sender<i32>,
        body: F,
    ) -> Result<T, tokio_postgres::Error>
    where
        C: WorkConnection,
        F: for<'c> FnOnce(&'c C) -> BoxFuture<'c, Result<T, tokio_postgres::Error>> + Send,
    {
        let client = connection.client();
        let timeout = (self.remaining() + BACKSTOP).as_millis();
        let begin = format!(
            "begin transaction read only; set local statement_timeout = {timeout}; {} \
             select pg_backend_pid()",
            self.set_local
        );
        for message in client.simple_query(&begin).await? {
            if let SimpleQueryMessage::Row(row) = message
                && let Some(pid) = row.get(0).and_then(|pid| pid.parse().ok())
            {
                // Nobody waits for it when the work was stopped before it began.
                backend.send(pid).ok();
                break;
            }
        }
        match body(connection).await {
            Ok(value) => {
                client.batch_execute("commit").await?;
                Ok(value)
            }
            Err(error) => {
                // The error comes before the server has done with the statement. Only its answer to what follows
                // says that the work has ended; a connection that broke has ended it too.
                client.batch_execute("rollback").await.ok();
                Err(error)
            }
        }
    }

    fn told<T>(&self, result: Result<T, tokio_postgres::Error>, stop: Option<Stop>) -> Ended<T> {
        match (result, stop) {
            (Ok(value), _) => Ended::Done(value),
            (Err(_), Some(stop)) => stopped(stop),
            (Err(error), None) => match error.code().map(tokio_postgres::error::SqlState::code) {
                Some("57014") if self.remaining().is_zero() => Ended::TimeBound,
                Some("57014" | "57P01") => Ended::Administrator,
                Some("40001" | "40P01") => Ended::RecoveryConflict,
                _ => Ended::Failed(error),
            },
        }
    }

    async fn terminate(&self, mut backend: tokio::sync::oneshot::Receiver<i32>) {
        let Ok(pid) = backend.try_recv() else { return };
        let Ok(connection) = self.terminator.get().await else {
            tracing::warn!(pid, "No connection to terminate a backend with");
            return;
        };
        let terminated = connection.execute(TERMINATE, &[&pid]).await;
        if let Err(error) = terminated {
            tracing::warn!(pid, error = %error, "A backend could not be terminated");
        }
    }
}

/// Cancels whatever runs on a connection, again and again, until it is dropped.
async fn cancel(client: &Client) -> Infallible {
    let token = client.cancel_token();
    loop {
        if let Err(error) = token.cancel_query(NoTls).await {
            tracing::warn!(error = %error, "A cancel could not be sent");
        }
        tokio::time::sleep(CANCEL_AGAIN).await;
    }
}

const TERMINATE: &str = include_str!("work/terminate.sql");

fn stopped<T>(stop: Stop) -> Ended<T> {
    match stop {
        Stop::TimeBound => Ended::TimeBound,
        Stop::ClientLeft => Ended::ClientLeft,
        Stop::Administrator => Ended::Administrator,
    }
}

/// Runs a heavy request as a task of its own and waits for it. Should the handler be dropped because its client left,
/// the token given to `work` is cancelled and the task goes on to its own end: it stops its query, writes its outcome
/// and releases its permit. The token is also cancelled when this replica has no more time to drain.
pub async fn owned<T, F, W>(app: &App, work: F) -> Result<T, Problem>
where
    T: Send + 'static,
    F: FnOnce(CancellationToken) -> W,
    W: Future<Output = T> + Send + 'static,
{
    let left = app.stop_work.child_token();
    let guard = left.clone().drop_guard();
    let ended = app.tasks.spawn(work(left)).await;
    guard.disarm();
    ended.map_err(|error| Problem::internal(&error))
}
