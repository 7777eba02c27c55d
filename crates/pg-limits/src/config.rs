use std::time::Duration;

use crate::{Endpoint, LimitsError, schema};

/// How statements reach the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Statements {
    /// Prepared once a connection: the fastest, for a direct connection.
    #[default]
    Prepared,
    /// Unnamed, parsed at each call: for a pooler in transaction mode, which must never see a
    /// named statement. `statement_timeout` and `lock_timeout` are then set on the role.
    Unnamed,
}

/// What [`crate::HeavyRequests::connect`] needs to know.
#[derive(Clone, Debug)]
pub struct Config {
    pub(crate) database: tokio_postgres::Config,
    pub(crate) schema: String,
    pub(crate) statements: Statements,
    pub(crate) connections: usize,
    pub(crate) installation_cap: u32,
    pub(crate) margin: Duration,
    pub(crate) claim_timeout: Duration,
    pub(crate) heartbeat: Duration,
    pub(crate) replica_name: String,
    pub(crate) replica_version: String,
    pub(crate) endpoints: Vec<Endpoint>,
    pub(crate) reservation: Duration,
    pub(crate) attempt_wait: Duration,
}

impl Config {
    /// The limits in `database`, for `endpoints`, with at most `installation_cap` heavy requests
    /// under way on all replicas together: take a quarter of the connection pool that they use,
    /// and at least one.
    ///
    /// Name every host of the database in `database`: only the one that accepts writes is used.
    pub fn new(
        database: tokio_postgres::Config,
        installation_cap: u32,
        endpoints: &[Endpoint],
    ) -> Self {
        Self {
            database,
            schema: "limits".to_owned(),
            statements: Statements::default(),
            connections: 2,
            installation_cap,
            margin: Duration::from_secs(30),
            claim_timeout: Duration::from_secs(3),
            heartbeat: Duration::from_secs(5),
            replica_name: "replica".to_owned(),
            replica_version: String::new(),
            endpoints: endpoints.to_vec(),
            reservation: Duration::from_secs(15),
            attempt_wait: Duration::from_secs(10),
        }
    }

    /// The schema of the limits' tables and functions; `limits` unless set.
    #[must_use]
    pub fn schema(mut self, schema: impl Into<String>) -> Self {
        self.schema = schema.into();
        self
    }

    /// How statements reach the server.
    #[must_use]
    pub fn statements(mut self, statements: Statements) -> Self {
        self.statements = statements;
        self
    }

    /// How many connections the limits keep for themselves: 2 unless set, and at least 1. They
    /// are pipelined, so a few carry many claims.
    #[must_use]
    pub fn connections(mut self, connections: usize) -> Self {
        self.connections = connections.max(1);
        self
    }

    /// How long a permit outlives its endpoint's time bound: 30 s unless set. It covers the time
    /// to stop the work, and a step of the database's clock.
    #[must_use]
    pub fn margin(mut self, margin: Duration) -> Self {
        self.margin = margin;
        self
    }

    /// How long a claim may take before its outcome counts as unknown: 3 s unless set.
    #[must_use]
    pub fn claim_timeout(mut self, claim_timeout: Duration) -> Self {
        self.claim_timeout = claim_timeout;
        self
    }

    /// How often this replica says that it lives: every 5 s unless set. The others count it as
    /// gone after 15 s of silence.
    #[must_use]
    pub fn heartbeat(mut self, heartbeat: Duration) -> Self {
        self.heartbeat = heartbeat;
        self
    }

    /// What operators see of this replica: a name (a host and port, a pod) and a version.
    #[must_use]
    pub fn replica(mut self, name: impl Into<String>, version: impl Into<String>) -> Self {
        self.replica_name = name.into();
        self.replica_version = version.into();
        self
    }

    /// How long an attempt under a [`crate::Throttle`] may take: 15 s unless set. The place of one
    /// that is not settled by then is free again.
    #[must_use]
    pub fn reservation(mut self, reservation: Duration) -> Self {
        self.reservation = reservation;
        self
    }

    /// How long an attempt waits for others under way before it is `Undecided`: 10 s unless set.
    #[must_use]
    pub fn attempt_wait(mut self, attempt_wait: Duration) -> Self {
        self.attempt_wait = attempt_wait;
        self
    }

    pub(crate) fn check(&self) -> Result<(), LimitsError> {
        schema::check(&self.schema).map_err(LimitsError::Config)?;
        let mut names: Vec<_> = self.endpoints.iter().map(Endpoint::name).collect();
        names.sort_unstable();
        if let Some(twice) = names.windows(2).find(|pair| pair.first() == pair.last()) {
            return Err(LimitsError::Config(format!("endpoint {twice:?} is declared twice")));
        }
        let largest = u32::try_from(i32::MAX).unwrap_or(u32::MAX);
        let caps = self.endpoints.iter().map(Endpoint::per_user).chain([self.installation_cap]);
        if caps.into_iter().any(|cap| cap > largest) {
            return Err(LimitsError::Config(format!("a cap is at most {largest}")));
        }
        Ok(())
    }
}
