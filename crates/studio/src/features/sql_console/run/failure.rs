//! Why a query has no answer. Told by SQLSTATE and our own state, never by a message's text.

use http::StatusCode;

use crate::features::sql_console::bounds::COLUMNS_MAX;
use crate::platform::audit::{Bound, Outcome};
use crate::platform::heavy::Endpoint;
use crate::platform::problem::Problem;
use crate::platform::work::STOPPED_BY_ADMINISTRATOR;

/// Why a query has no answer.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The author's own SQL: a name that is not there, a division by zero. PostgreSQL's sentence is
    /// about that text and is safe to show to its author.
    Author { sqlstate: String, sentence: String },
    /// It gives more columns than the bounds allow.
    TooManyColumns(usize),
    /// It needed more temporary space or memory than a query may use.
    TooLarge,
    /// Stopped at the time bound of its endpoint before the first row.
    TimeBound(Endpoint),
    /// Stopped because its client left, or because this replica shuts down.
    ClientLeft,
    /// Stopped by an administrator, through its permit.
    Evicted,
    /// Stopped in the database.
    Stopped,
    /// The database cannot be reached or has no room.
    Unavailable(String),
    /// Another error of the database for this statement.
    Refused { sqlstate: String },
    /// A fault of ours.
    Internal(String),
}

impl From<tokio_postgres::Error> for Failure {
    fn from(error: tokio_postgres::Error) -> Self {
        let Some(database) = error.as_db_error() else {
            return Self::Unavailable(error.to_string());
        };
        let sqlstate = database.code().code().to_owned();
        let class: String = sqlstate.chars().take(2).collect();
        match (class.as_str(), sqlstate.as_str()) {
            // The set-up and the check disagree about what the role may read.
            (_, "42501") => Self::Internal(database.message().to_owned()),
            (_, "53400" | "53200" | "53100") => Self::TooLarge,
            // Cardinality, data, syntax and names, program limits, features.
            ("21" | "22" | "42" | "54" | "0A", _) => {
                Self::Author { sqlstate, sentence: database.message().to_owned() }
            }
            ("08" | "53" | "57", _) => Self::Unavailable(database.message().to_owned()),
            _ => Self::Refused { sqlstate },
        }
    }
}

impl Failure {
    /// The outcome that the audit trail keeps.
    pub(crate) fn outcome(&self) -> Outcome {
        let reason = match self {
            Self::ClientLeft => return Outcome::AbortedByClient { rows: 0 },
            Self::TimeBound(_) => return Outcome::Partial { bound: Bound::Time, rows: 0 },
            Self::Author { .. } | Self::TooManyColumns(_) | Self::Refused { .. } => "invalid-sql",
            Self::TooLarge => "too-large",
            Self::Evicted => STOPPED_BY_ADMINISTRATOR,
            Self::Stopped => "stopped",
            Self::Unavailable(_) => "database",
            Self::Internal(_) => "internal",
        };
        Outcome::Failed { reason, rows: 0 }
    }
}

impl From<Failure> for Problem {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Author { sqlstate, sentence } => {
                invalid_sql(sentence).member("sqlstate", sqlstate)
            }
            Failure::TooManyColumns(columns) => invalid_sql(format!(
                "The query gives {columns} columns; the console answers with at most {COLUMNS_MAX}."
            )),
            Failure::Refused { sqlstate } => {
                invalid_sql("PostgreSQL does not run this query.").member("sqlstate", sqlstate)
            }
            Failure::TooLarge => Self::new(
                StatusCode::UNPROCESSABLE_ENTITY,
                "query-too-large",
                "The query needs too much space",
            )
            .detail("It needs more memory or temporary space than a query of the console may use."),
            Failure::TimeBound(endpoint) => Self::timed_out(&endpoint),
            Failure::ClientLeft => Self::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "draining",
                "This replica is shutting down",
            ),
            Failure::Evicted | Failure::Stopped => Self::query_stopped(),
            Failure::Unavailable(cause) => Self::database_unavailable(&cause),
            Failure::Internal(cause) => Self::internal(&cause),
        }
    }
}

/// 400: the text is not a query that the console runs.
pub(crate) fn invalid_sql(sentence: impl Into<String>) -> Problem {
    Problem::new(StatusCode::BAD_REQUEST, "invalid-sql", "The query cannot be run").detail(sentence)
}
