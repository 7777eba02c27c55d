use std::time::Duration;

use tokio_postgres::error::SqlState;

/// Why a call of the limits failed. A refusal is not an error: see [`crate::Claim::Refused`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LimitsError {
    /// The limits' database could not be asked, or its answer was lost. Whether the claim was
    /// granted is found out behind the scenes, and what was granted is given back.
    #[error("the limits' database cannot be reached")]
    Unavailable(#[source] Option<tokio_postgres::Error>),
    /// The claim could neither be granted nor be proved to exceed a cap.
    #[error("the limits could not decide in time")]
    Undecided,
    /// The library is shutting down, and grants nothing more.
    #[error("the limits are shutting down")]
    ShuttingDown,
    /// The database answered with an error that trying again will not mend, such as a missing
    /// schema or a missing grant.
    #[error("the limits' database refused the call")]
    Database(#[source] tokio_postgres::Error),
    /// A setting is wrong.
    #[error("{0}")]
    Config(String),
}

impl LimitsError {
    /// Whether the same call may succeed a little later.
    pub const fn is_transient(&self) -> bool {
        matches!(self, Self::Unavailable(_) | Self::Undecided)
    }

    /// What the driver's error, if there is one, means to us.
    pub(crate) fn kind(&self) -> Option<Kind> {
        match self {
            Self::Unavailable(Some(error)) | Self::Database(error) => Some(kind(error)),
            Self::Unavailable(None) | Self::Undecided | Self::ShuttingDown | Self::Config(_) => {
                None
            }
        }
    }

    /// When to try again, in whole seconds.
    pub const fn retry_after(&self) -> Duration {
        Duration::from_secs(1)
    }
}

/// What an error of the driver means to us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The permits' table, or its file, is missing.
    TableLost,
    /// No cap is registered for the endpoint.
    Unregistered,
    /// This server is a standby.
    Standby,
    /// The connection is gone, and with it the answer.
    ConnectionLost,
    /// The call was rolled back and may be sent again.
    RolledBack,
    /// Nothing that we can mend.
    Other,
}

pub(crate) fn kind(error: &tokio_postgres::Error) -> Kind {
    let Some(code) = error.code() else { return Kind::ConnectionLost };
    match code.code() {
        "LM001" => Kind::Unregistered,
        // "cannot access temporary or unlogged relations during recovery"
        "0A000" | "25006" => Kind::Standby,
        _ if *code == SqlState::UNDEFINED_TABLE || *code == SqlState::UNDEFINED_FILE => {
            Kind::TableLost
        }
        _ if *code == SqlState::T_R_DEADLOCK_DETECTED
            || *code == SqlState::T_R_SERIALIZATION_FAILURE
            || *code == SqlState::LOCK_NOT_AVAILABLE
            || *code == SqlState::QUERY_CANCELED =>
        {
            Kind::RolledBack
        }
        // Class 57P: the server ends the connection; class 08: it never was one; class 53: too many.
        other if other.starts_with("57P") || other.starts_with("08") || other.starts_with("53") => {
            Kind::ConnectionLost
        }
        _ => Kind::Other,
    }
}
