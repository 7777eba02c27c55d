//! `studio try-limit`: sends heavy requests of one user to all replicas at once, and shows who was admitted, who was
//! refused, and by whose limit. An observer in the database counts independently.

mod observer;
mod request;
mod table;

use std::io::BufRead as _;
use std::process::ExitCode;

use anyhow::Context as _;
use futures_util::future::join_all;

use self::observer::Observer;
use self::request::{Kind, Outcome, Signed};
use crate::settings;

/// The SQL console's limit for one user.
const QUERIES_A_USER: i64 = 2;

/// Takes a few seconds on 200,000 audit events, so that queries overlap.
const SLOW_SQL: &str = "select count(*) from audit_event as a \
     cross join (select id from audit_event where id % 1000 = 0) as b where a.id > b.id";

/// What to try.
#[derive(Debug, clap::Args)]
pub(super) struct TryLimit {
    /// A replica's address, such as `http://127.0.0.1:8080`. Give it once for each replica.
    #[arg(long = "url", required = true)]
    urls: Vec<String>,
    /// The account. Its password is in `STUDIO_TRY_PASSWORD`, or is the first line of standard input.
    #[arg(long)]
    name: String,
    /// How many requests at once: half of them SQL queries, half exports.
    #[arg(long, default_value_t = 20)]
    requests: usize,
    /// The query. It should take a few seconds, or the requests do not meet.
    #[arg(long, default_value = SLOW_SQL)]
    sql: String,
    /// An address of Studio's database whose role may read all of `pg_stat_activity`. With it live queries of the
    /// console are counted independently of Studio.
    #[arg(long)]
    database: Option<String>,
}

impl TryLimit {
    pub(super) async fn run(&self) -> anyhow::Result<ExitCode> {
        let password =
            match settings::try_password() {
                Some(password) => password,
                None => std::io::stdin().lock().lines().next().context(
                    "no password: set STUDIO_TRY_PASSWORD or write it to standard input",
                )??,
            };
        let attempt = Attempt {
            replicas: self.urls.clone(),
            name: self.name.clone(),
            password,
            requests: self.requests,
            sql: self.sql.clone(),
            database: self.database.clone(),
        };
        try_limit(&attempt).await
    }
}

/// The same, from wherever it comes.
#[derive(Debug)]
pub(super) struct Attempt {
    pub(super) replicas: Vec<String>,
    pub(super) name: String,
    pub(super) password: String,
    pub(super) requests: usize,
    pub(super) sql: String,
    pub(super) database: Option<String>,
}

impl Default for Attempt {
    fn default() -> Self {
        Self {
            replicas: Vec::new(),
            name: String::new(),
            password: String::new(),
            requests: 20,
            sql: SLOW_SQL.to_owned(),
            database: None,
        }
    }
}

/// Sends the requests, prints what became of them, and fails when a limit did not hold or was not met.
pub(super) async fn try_limit(attempt: &Attempt) -> anyhow::Result<ExitCode> {
    let first = attempt.replicas.first().context("no replica was named")?;
    // One session, good on every replica.
    let signed = Signed::in_at(first, &attempt.name, &attempt.password).await?;
    let observer = match &attempt.database {
        Some(database) => Some(Observer::start(database).await?),
        None => None,
    };
    let requests = (0..attempt.requests).map(|number| {
        let kind = if number % 2 == 0 { Kind::Query } else { Kind::Export };
        // Pairs of a query and an export go to the replicas in turn.
        let replica = attempt.replicas.iter().cycle().nth(number / 2).unwrap_or(first);
        signed.send(kind, replica, &attempt.sql)
    });
    let outcomes = join_all(requests).await;
    let most = match observer {
        Some(observer) => Some(observer.most_at_once().await?),
        None => None,
    };
    super::print(&table::of(&outcomes))?;
    verdict(&outcomes, most)
}

fn verdict(outcomes: &[Outcome], most: Option<i64>) -> anyhow::Result<ExitCode> {
    let refused = outcomes.iter().filter(|outcome| outcome.is_refused()).count();
    let admitted = outcomes.iter().filter(|outcome| outcome.is_admitted()).count();
    let failed = outcomes.len() - refused - admitted;
    super::print(&format!("{admitted} admitted, {refused} refused, {failed} failed."))?;
    let mut holds = true;
    match most {
        Some(most) if most > QUERIES_A_USER => {
            super::print(&format!(
                "The database counted {most} live queries at one time: the limit of {QUERIES_A_USER} did NOT hold."
            ))?;
            holds = false;
        }
        Some(most) => super::print(&format!(
            "The database never counted more than {most} live queries at one time: the limit of {QUERIES_A_USER} held over all replicas."
        ))?,
        None => super::print("Nobody watched the database: pass --database to have it counted.")?,
    }
    if refused == 0 {
        super::print("Nothing was refused: the requests did not meet a limit.")?;
        holds = false;
    }
    if admitted == 0 {
        super::print("Nothing was admitted: this shows nothing about limits.")?;
        holds = false;
    }
    Ok(if holds { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
