//! One request of the trial.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use http::{StatusCode, header};
use serde_json::{Value, json};

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Query,
    Export,
}

/// What became of it.
#[derive(Debug, Clone)]
pub(super) struct Outcome {
    pub(super) kind: Kind,
    pub(super) replica: String,
    pub(super) took: Duration,
    pub(super) verdict: Verdict,
}

#[derive(Debug, Clone)]
pub(super) enum Verdict {
    Admitted,
    Refused { scope: String, limit: u64 },
    Failed(String),
}

impl Outcome {
    pub(super) fn is_refused(&self) -> bool {
        matches!(self.verdict, Verdict::Refused { .. })
    }

    pub(super) fn is_admitted(&self) -> bool {
        matches!(self.verdict, Verdict::Admitted)
    }
}

/// Somebody who is signed in.
#[derive(Debug)]
pub(super) struct Signed {
    client: reqwest::Client,
    cookie: String,
}

impl Signed {
    pub(super) async fn in_at(replica: &str, name: &str, password: &str) -> anyhow::Result<Self> {
        let client = reqwest::Client::new();
        let answer = client
            .post(format!("{replica}/api/v1/session"))
            .header(header::ORIGIN, replica)
            .json(&json!({ "name": name, "password": password }))
            .send()
            .await
            .with_context(|| format!("reaching {replica}"))?;
        anyhow::ensure!(answer.status().is_success(), "signing in failed: {}", answer.status());
        let cookie = answer
            .headers()
            .get(header::SET_COOKIE)
            .and_then(|cookie| cookie.to_str().ok())
            .and_then(|cookie| cookie.split(';').next())
            .context("signing in gave no session")?
            .to_owned();
        Ok(Self { client, cookie })
    }

    pub(super) async fn send(&self, kind: Kind, replica: &str, sql: &str) -> Outcome {
        let begun = Instant::now();
        let verdict = self.verdict(kind, replica, sql).await;
        Outcome { kind, replica: replica.to_owned(), took: begun.elapsed(), verdict }
    }

    async fn verdict(&self, kind: Kind, replica: &str, sql: &str) -> Verdict {
        let request = match kind {
            Kind::Query => {
                self.client.post(format!("{replica}/api/v1/sql/query")).json(&json!({ "sql": sql }))
            }
            Kind::Export => self.client.get(format!("{replica}/api/v1/audit/export?format=csv")),
        };
        let request = request.header(header::ORIGIN, replica).header(header::COOKIE, &self.cookie);
        match answer(request).await {
            Ok(verdict) => verdict,
            Err(error) => Verdict::Failed(error.to_string()),
        }
    }
}

async fn answer(request: reqwest::RequestBuilder) -> reqwest::Result<Verdict> {
    let mut answer = request.send().await?;
    let status = answer.status();
    if status.is_success() {
        // To the end, without keeping it.
        while answer.chunk().await?.is_some() {}
        return Ok(Verdict::Admitted);
    }
    let problem: Value = answer.json().await?;
    let text =
        |name: &str| problem.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let limit = problem.get("limit").and_then(Value::as_u64);
    Ok(match limit {
        Some(limit) if status == StatusCode::TOO_MANY_REQUESTS => {
            Verdict::Refused { scope: text("scope"), limit }
        }
        _ => Verdict::Failed(format!("{status}: {} {}", text("title"), text("detail"))),
    })
}
