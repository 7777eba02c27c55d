//! The trial as a table.

use std::fmt::Write as _;

use super::request::{Kind, Outcome, Verdict};

/// A line for each request, in the order in which they ended.
pub(super) fn of(outcomes: &[Outcome]) -> String {
    let mut sorted: Vec<&Outcome> = outcomes.iter().collect();
    sorted.sort_by_key(|outcome| outcome.took);
    let width = sorted.iter().map(|outcome| outcome.replica.len()).max().unwrap_or(0);
    let mut text = format!("{:>9}  {:<width$}  {:<9}  answer\n", "after", "replica", "request");
    for outcome in sorted {
        let request = match outcome.kind {
            Kind::Query => "SQL query",
            Kind::Export => "export",
        };
        let answer = match &outcome.verdict {
            Verdict::Admitted => "admitted, and answered".to_owned(),
            Verdict::Refused { scope, limit } => {
                format!("refused: {limit} under way, {}", whose(scope))
            }
            Verdict::Failed(why) => format!("failed: {why}"),
        };
        let took = format!("{} ms", outcome.took.as_millis());
        // Writing to a String does not fail.
        writeln!(text, "{took:>9}  {:<width$}  {request:<9}  {answer}", outcome.replica).ok();
    }
    text
}

fn whose(scope: &str) -> &str {
    match scope {
        "user" => "the user's own limit",
        "installation" => "the installation's limit",
        other => other,
    }
}
