//! The metrics that the limits report, by the names that dashboards know.

use std::time::Duration;

use metrics::{counter, gauge, histogram};

use crate::enter::Entry;
use crate::error::LimitsError;
use crate::heavy_requests::Claim;
use crate::permit::Scope;

/// Counts what a claim came to: `pg_limits_claims_total{endpoint, outcome}`.
pub(crate) fn claim(endpoint: &'static str, outcome: &Result<Claim, LimitsError>) {
    let outcome = match outcome {
        Ok(Claim::Granted(permit)) if permit.would_have_been_refused().is_some() => "shadow_user",
        Ok(Claim::Granted(_)) => "granted",
        Ok(Claim::Refused(refusal)) => match refusal.scope {
            Scope::User => "refused_user",
            Scope::Installation => "refused_installation",
        },
        Err(LimitsError::Undecided) => "undecided",
        Err(_) => "unavailable",
    };
    counter!("pg_limits_claims_total", "endpoint" => endpoint, "outcome" => outcome).increment(1);
}

/// A permit begins: `pg_limits_permits_held{endpoint}`.
pub(crate) fn grant(endpoint: &'static str) {
    gauge!("pg_limits_permits_held", "endpoint" => endpoint).increment(1.0);
}

/// A permit ends, after so long: `pg_limits_hold_seconds{endpoint}`.
pub(crate) fn end(endpoint: &'static str, held: Duration) {
    gauge!("pg_limits_permits_held", "endpoint" => endpoint).decrement(1.0);
    histogram!("pg_limits_hold_seconds", "endpoint" => endpoint).record(held.as_secs_f64());
}

/// Releases that the database has not answered: `pg_limits_releases_pending`.
pub(crate) fn pending(change: f64) {
    gauge!("pg_limits_releases_pending").increment(change);
}

/// Claims that lost their answer and are not settled: `pg_limits_permits_unknown`.
pub(crate) fn unknown(change: f64) {
    gauge!("pg_limits_permits_unknown").increment(change);
}

/// The permits' table was made anew: `pg_limits_table_repairs_total`.
pub(crate) fn repair() {
    tracing::warn!("A table of the limits was lost and is made anew");
    counter!("pg_limits_table_repairs_total").increment(1);
}

/// An attempt under a throttle: `pg_limits_attempts_total{throttle, outcome}`.
pub(crate) fn attempt(throttle: &'static str, outcome: &'static str) {
    counter!("pg_limits_attempts_total", "throttle" => throttle, "outcome" => outcome).increment(1);
}

/// Counts what asking to go in came to: `pg_limits_entries_total{limit, outcome}`. `limit` is the one
/// that refused or would have; of an admission, the in-flight cap's or the first window's name.
pub(crate) fn entry(name: &'static str, entry: &Result<Entry, LimitsError>) {
    let (limit, outcome) = match entry {
        Ok(Entry::Admitted(admitted)) => match admitted.would_have_been_refused() {
            Some(limit) => (limit.name, "shadow_refused"),
            None => (name, "admitted"),
        },
        Ok(Entry::Refused(limit)) => (limit.name, "refused"),
        Err(LimitsError::Undecided) => (name, "undecided"),
        Err(_) => (name, "unavailable"),
    };
    counter!("pg_limits_entries_total", "limit" => limit, "outcome" => outcome).increment(1);
}

/// How long a call waited for its turn: `pg_limits_rate_wait_seconds{rate}`.
pub(crate) fn rate_wait(name: &'static str, wait: Duration) {
    histogram!("pg_limits_rate_wait_seconds", "rate" => name).record(wait.as_secs_f64());
}
