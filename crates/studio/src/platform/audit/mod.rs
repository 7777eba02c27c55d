//! The audit trail: a row before the act, its outcome after.

use std::time::Duration;

use serde_json::Value;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use super::access::SignedIn;
use super::database::Pools;
use super::problem::Problem;

const BEGIN: &str = include_str!("queries/begin.sql");
const RECORD: &str = include_str!("queries/record.sql");
const FINISH: &str = include_str!("queries/finish.sql");
const INTERRUPT: &str = include_str!("queries/interrupt.sql");

/// How long after its time bound a row may stay without outcome.
const PATIENCE: Duration = Duration::from_mins(1);

/// How often an outcome is tried again while the database is away, and how long it waits between.
const FINISH_RETRIES: u32 = 10;
const FINISH_PAUSE: Duration = Duration::from_secs(1);

/// What was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Signed in.
    SignIn,
    /// Signed out.
    SignOut,
    /// An account was created.
    AccountCreate,
    /// A query in the SQL console.
    SqlQuery,
    /// An export of the audit trail.
    AuditExport,
    /// A token was made.
    TokenCreate,
    /// A token got a new secret.
    TokenRotate,
    /// A token was revoked.
    TokenRevoke,
    /// An account's role changed, or it was disabled or enabled.
    AccountChange,
    /// An account got a new password.
    AccountPassword,
    /// A plugin was uploaded.
    PluginUpload,
    /// A plugin was deleted.
    PluginDelete,
    /// Another's heavy request was stopped.
    PermitEvict,
    /// Settings were changed at run time.
    SettingsChange,
}

impl Action {
    /// All actions.
    pub const ALL: [Self; 14] = [
        Self::SignIn,
        Self::SignOut,
        Self::AccountCreate,
        Self::SqlQuery,
        Self::AuditExport,
        Self::TokenCreate,
        Self::TokenRotate,
        Self::TokenRevoke,
        Self::AccountChange,
        Self::AccountPassword,
        Self::PluginUpload,
        Self::PluginDelete,
        Self::PermitEvict,
        Self::SettingsChange,
    ];

    /// The name kept in the trail.
    pub const fn name(self) -> &'static str {
        match self {
            Self::SignIn => "session.create",
            Self::SignOut => "session.delete",
            Self::AccountCreate => "account.create",
            Self::SqlQuery => "sql.query",
            Self::AuditExport => "audit.export",
            Self::TokenCreate => "token.create",
            Self::TokenRotate => "token.rotate",
            Self::TokenRevoke => "token.revoke",
            Self::AccountChange => "account.change",
            Self::AccountPassword => "account.password",
            Self::PluginUpload => "plugin.upload",
            Self::PluginDelete => "plugin.delete",
            Self::PermitEvict => "permit.evict",
            Self::SettingsChange => "settings.change",
        }
    }
}

/// The bound at which an answer was cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// The most rows.
    Rows,
    /// The time bound.
    Time,
    /// The most bytes.
    Bytes,
}

impl Bound {
    /// The name in end marks and in the trail.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rows => "ROWS",
            Self::Time => "TIME",
            Self::Bytes => "BYTES",
        }
    }
}

/// How an act ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Whole.
    Complete {
        /// The rows answered.
        rows: u64,
    },
    /// Cut at a bound.
    Partial {
        /// The bound.
        bound: Bound,
        /// The rows answered.
        rows: u64,
    },
    /// The client left before the end.
    AbortedByClient {
        /// The rows sent.
        rows: u64,
    },
    /// It failed.
    Failed {
        /// A stable word for why, never internal text.
        reason: &'static str,
        /// The rows sent before.
        rows: u64,
    },
}

impl Outcome {
    /// The names that the trail knows, `open` and `interrupted` included.
    pub const NAMES: [&'static str; 6] =
        ["open", "complete", "partial", "aborted_by_client", "failed", "interrupted"];

    fn columns(self) -> (&'static str, Option<&'static str>, u64) {
        match self {
            Self::Complete { rows } => ("complete", None, rows),
            Self::Partial { bound, rows } => ("partial", Some(bound.name()), rows),
            Self::AbortedByClient { rows } => ("aborted_by_client", None, rows),
            Self::Failed { reason, rows } => ("failed", Some(reason), rows),
        }
    }
}

/// Writes the trail. Clones share everything.
#[derive(Debug, Clone)]
pub struct AuditTrail {
    pools: Pools,
    tasks: TaskTracker,
    replica: Uuid,
}

impl AuditTrail {
    /// A trail written by this replica; outcomes that nobody waits for are tasks of `tasks`.
    pub fn new(pools: Pools, tasks: TaskTracker, replica: Uuid) -> Self {
        Self { pools, tasks, replica }
    }

    /// Writes the row of an act that is about to begin and gives its connection back. `bound` is the act's time
    /// bound: a row that has no outcome 60 s after it is marked `interrupted`.
    ///
    /// # Errors
    /// A 503 or 500 problem; the act must then not begin.
    pub async fn begin(
        &self,
        who: &SignedIn,
        action: Action,
        target: &str,
        detail: Value,
        bound: Duration,
    ) -> Result<OpenEvent, Problem> {
        let detail = with_token(who, detail);
        let connection = self.pools.main().await?;
        let statement = connection.prepare_cached(BEGIN).await?;
        let patience = i64::try_from((bound + PATIENCE).as_millis()).unwrap_or(i64::MAX);
        let row = connection
            .query_one(
                &statement,
                &[
                    &who.account,
                    &who.name,
                    &action.name(),
                    &target,
                    &detail,
                    &self.replica,
                    &who.request_id,
                    &patience,
                ],
            )
            .await?;
        Ok(OpenEvent { id: row.get(0), trail: self.clone(), is_finished: false })
    }

    /// Writes the row of an act that has been done as a whole.
    ///
    /// # Errors
    /// A 503 or 500 problem.
    pub async fn record(
        &self,
        who: &SignedIn,
        action: Action,
        target: &str,
        detail: Value,
    ) -> Result<(), Problem> {
        let event = self.begin(who, action, target, detail, Duration::ZERO).await?;
        event.finish(Outcome::Complete { rows: 0 }).await;
        Ok(())
    }

    /// Writes the row of an act within the transaction that does it: both are there, or neither. Not for an act that
    /// takes long, or that has effects outside the database.
    ///
    /// # Errors
    /// A 503 or 500 problem; the transaction must then not be committed.
    pub async fn record_in(
        &self,
        transaction: &deadpool_postgres::Transaction<'_>,
        who: &SignedIn,
        action: Action,
        target: &str,
        detail: Value,
    ) -> Result<(), Problem> {
        let detail = with_token(who, detail);
        let statement = transaction.prepare_cached(RECORD).await?;
        transaction
            .execute(
                &statement,
                &[
                    &who.account,
                    &who.name,
                    &action.name(),
                    &target,
                    &detail,
                    &self.replica,
                    &who.request_id,
                ],
            )
            .await?;
        Ok(())
    }

    /// Marks rows whose act must be over as `interrupted`; gives how many.
    ///
    /// # Errors
    /// The database's.
    pub async fn interrupt_overdue(&self) -> Result<u64, Problem> {
        let connection = self.pools.main().await?;
        Ok(connection.execute(INTERRUPT, &[]).await?)
    }

    async fn write_outcome(&self, id: i64, outcome: Outcome) {
        for attempt in 0..FINISH_RETRIES {
            if attempt > 0 {
                tokio::time::sleep(FINISH_PAUSE).await;
            }
            match self.try_outcome(id, outcome).await {
                Err(problem) if problem.status() == http::StatusCode::SERVICE_UNAVAILABLE => {}
                // Written, or refused for good.
                Ok(()) | Err(_) => return,
            }
        }
        tracing::error!(
            event = id,
            "An audit outcome could not be written; it becomes interrupted"
        );
    }

    async fn try_outcome(&self, id: i64, outcome: Outcome) -> Result<(), Problem> {
        let (name, bound, rows) = outcome.columns();
        let rows = i64::try_from(rows).unwrap_or(i64::MAX);
        let connection = self.pools.main().await?;
        let statement = connection.prepare_cached(FINISH).await?;
        connection.execute(&statement, &[&id, &name, &bound, &rows]).await?;
        Ok(())
    }
}

/// What a program did names the token that it did it with.
fn with_token(who: &SignedIn, mut detail: Value) -> Value {
    if let (Some(token), Value::Object(members)) = (who.token(), &mut detail) {
        members.insert("token".to_owned(), token.0.to_string().into());
    }
    detail
}

/// A row of the trail whose act goes on. Dropped without [`OpenEvent::finish`], it is finished as aborted by a task
/// of its own.
#[derive(Debug)]
pub struct OpenEvent {
    id: i64,
    trail: AuditTrail,
    is_finished: bool,
}

impl OpenEvent {
    /// The row's id.
    pub fn id(&self) -> i64 {
        self.id
    }

    /// Writes the outcome, trying again for about ten seconds while the database is away. It never fails: a row left
    /// open is marked `interrupted` later.
    ///
    /// # Cancel safety
    /// The outcome is written by a task of its own, also when this future is dropped.
    pub async fn finish(mut self, outcome: Outcome) {
        self.is_finished = true;
        let (trail, id) = (self.trail.clone(), self.id);
        let written = self.trail.tasks.spawn(async move { trail.write_outcome(id, outcome).await });
        if let Err(error) = written.await {
            tracing::error!(error = %error, "Writing an audit outcome failed");
        }
    }
}

impl Drop for OpenEvent {
    fn drop(&mut self) {
        if self.is_finished {
            return;
        }
        let (trail, id) = (self.trail.clone(), self.id);
        self.trail.tasks.spawn(async move {
            trail.write_outcome(id, Outcome::AbortedByClient { rows: 0 }).await;
        });
    }
}
