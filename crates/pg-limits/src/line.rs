//! One connection of the limiter's own, opened anew when it was lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::Mutex;
use tokio_postgres::config::TargetSessionAttrs;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, NoTls, Row, Statement};
use tokio_util::task::TaskTracker;

use crate::LimitsError;
use crate::config::{Config, Statements};
use crate::error::{Kind, kind};
use crate::metering;
use crate::statements::{self, Sql};

/// How long opening a connection may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// A parameter list of the driver.
pub(crate) type Params<'a> = &'a [&'a (dyn ToSql + Sync)];

/// Which server process serves a connection; unknown behind a pooler.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Backend {
    pub(crate) pid: i32,
    pub(crate) started_us: i64,
}

#[derive(Debug)]
pub(crate) struct Connection {
    client: Client,
    schema: String,
    /// In the order of [`statements::OF_REQUESTS`]; empty where nothing may be prepared.
    prepared: Vec<Statement>,
    pub(crate) backend: Option<Backend>,
}

impl Connection {
    async fn open(config: &Config, tasks: &TaskTracker) -> Result<Self, tokio_postgres::Error> {
        let mut database = config.database.clone();
        database.target_session_attrs(TargetSessionAttrs::ReadWrite);
        database.connect_timeout(CONNECT_TIMEOUT);
        database.tcp_user_timeout(Duration::from_secs(5));
        database.keepalives_idle(Duration::from_secs(10));
        if config.statements == Statements::Prepared {
            // A claim holds its user's lock until it commits: it must end, one way or the other.
            let options = database.get_options().unwrap_or_default().to_owned();
            database.options(format!(
                "{options} -c statement_timeout=2000 -c lock_timeout=1000 -c idle_in_transaction_session_timeout=2000"
            ));
        }
        if database.get_application_name().is_none() {
            database.application_name("pg-limits");
        }
        let (client, connection) = database.connect(NoTls).await?;
        tasks.spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "A connection of the limits ended");
            }
        });
        let mut line =
            Self { client, schema: config.schema.clone(), prepared: Vec::new(), backend: None };
        if config.statements == Statements::Prepared {
            let prepared = line.prepare_all().await;
            line.prepared = match prepared {
                // Not every statement is a function's call: some name a table.
                Err(error) if kind(&error) == Kind::TableLost => {
                    metering::repair();
                    line.query(&statements::REPAIR, &[]).await?;
                    line.prepare_all().await?
                }
                prepared => prepared?,
            };
            let backend = line.query_one(&statements::BACKEND, &[]).await?;
            line.backend =
                Some(Backend { pid: backend.try_get(0)?, started_us: backend.try_get(1)? });
        }
        Ok(line)
    }

    async fn prepare_all(&self) -> Result<Vec<Statement>, tokio_postgres::Error> {
        let prepare = statements::OF_REQUESTS.map(|sql| self.prepare(sql));
        futures_util::future::try_join_all(prepare).await
    }

    async fn prepare(&self, sql: &'static Sql) -> Result<Statement, tokio_postgres::Error> {
        self.client.prepare_typed(&sql.text(&self.schema), sql.types).await
    }

    fn prepared(&self, sql: &Sql) -> Option<&Statement> {
        let known = statements::OF_REQUESTS.iter().position(|known| std::ptr::eq(*known, sql));
        known.and_then(|index| self.prepared.get(index))
    }

    /// Runs a statement in one round trip, and takes its only row.
    pub(crate) async fn query_one(
        &self,
        sql: &Sql,
        params: Params<'_>,
    ) -> Result<Row, tokio_postgres::Error> {
        if let Some(statement) = self.prepared(sql) {
            return self.client.query_one(statement, params).await;
        }
        let typed: Vec<_> = params.iter().copied().zip(sql.types.iter().cloned()).collect();
        self.client.query_typed_one(&sql.text(&self.schema), &typed).await
    }

    pub(crate) async fn query(
        &self,
        sql: &Sql,
        params: Params<'_>,
    ) -> Result<Vec<Row>, tokio_postgres::Error> {
        if let Some(statement) = self.prepared(sql) {
            return self.client.query(statement, params).await;
        }
        let typed: Vec<_> = params.iter().copied().zip(sql.types.iter().cloned()).collect();
        self.client.query_typed(&sql.text(&self.schema), &typed).await
    }

    fn is_usable(&self) -> bool {
        !self.client.is_closed()
    }
}

/// A place for one connection; a lost one is replaced by the next call that wants it.
#[derive(Debug, Default)]
pub(crate) struct Line {
    connection: Mutex<Option<Arc<Connection>>>,
    under_way: AtomicUsize,
    /// How many it has opened.
    opened: AtomicU64,
}

impl Line {
    /// The connection, opened if there is none.
    pub(crate) async fn connection(
        &self,
        config: &Config,
        tasks: &TaskTracker,
    ) -> Result<Arc<Connection>, LimitsError> {
        let mut place = self.connection.lock().await;
        if let Some(connection) = place.as_ref().filter(|connection| connection.is_usable()) {
            return Ok(Arc::clone(connection));
        }
        let opened = tokio::time::timeout(CONNECT_TIMEOUT, Connection::open(config, tasks)).await;
        let connection = match opened {
            Ok(Ok(connection)) => Arc::new(connection),
            Ok(Err(error)) => return Err(LimitsError::Unavailable(Some(error))),
            Err(_elapsed) => return Err(LimitsError::Unavailable(None)),
        };
        *place = Some(Arc::clone(&connection));
        self.opened.fetch_add(1, Ordering::AcqRel);
        Ok(connection)
    }

    /// Gives up a connection that no longer answers. It closes when its last call has ended.
    pub(crate) async fn retire(&self, broken: &Arc<Connection>) {
        let mut place = self.connection.lock().await;
        if place.as_ref().is_some_and(|current| Arc::ptr_eq(current, broken)) {
            *place = None;
        }
    }

    /// The number of its latest connection. What the server was told by an earlier one, it may have lost.
    pub(crate) fn number(&self) -> u64 {
        self.opened.load(Ordering::Acquire)
    }

    pub(crate) fn under_way(&self) -> usize {
        self.under_way.load(Ordering::Relaxed)
    }

    /// Counts a call while the guard lives, so that the next one can choose a quieter line.
    pub(crate) fn busy(&self) -> Busy<'_> {
        self.under_way.fetch_add(1, Ordering::Relaxed);
        Busy(self)
    }
}

pub(crate) struct Busy<'a>(&'a Line);

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.under_way.fetch_sub(1, Ordering::Relaxed);
    }
}
