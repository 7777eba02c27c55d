//! One client of Studio's HTTP face that keeps its connection.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use reqwest::header;
use serde::Deserialize;
use serde::de::IgnoredAny;

use bench::Account;

pub(crate) struct Session {
    client: reqwest::Client,
    base: String,
    cookie: String,
}

/// What is read of a page; the clock has stopped before.
#[derive(Debug, Deserialize)]
pub(crate) struct Page {
    items: Vec<IgnoredAny>,
    pub(crate) next: Option<String>,
}

impl Page {
    pub(crate) fn rows(&self) -> usize {
        self.items.len()
    }
}

impl Session {
    pub(crate) async fn sign_in(base: &str, account: &Account) -> Result<Self> {
        let client = reqwest::Client::builder().no_proxy().build()?;
        let response = client
            .post(format!("{base}/api/v1/session"))
            .header(header::ORIGIN, base)
            .json(&serde_json::json!({ "name": account.name, "password": account.password }))
            .send()
            .await?
            .error_for_status()?;
        let cookie = response.headers().get(header::SET_COOKIE).context("no cookie")?.to_str()?;
        let cookie = cookie.split(';').next().unwrap_or_default().to_owned();
        Ok(Self { client, base: base.to_owned(), cookie })
    }

    fn get(&self, path: &str) -> reqwest::RequestBuilder {
        self.client.get(format!("{}{path}", self.base)).header(header::COOKIE, &self.cookie)
    }

    /// A page and how long its last byte took.
    pub(crate) async fn page(&self, path: &str) -> Result<(Page, Duration)> {
        let start = Instant::now();
        let response = self.get(path).send().await?.error_for_status()?;
        let body = response.bytes().await?;
        let took = start.elapsed();
        Ok((serde_json::from_slice(&body)?, took))
    }

    /// Reads a CSV export into nothing; gives the rows that its end mark tells, its bytes, and how long it took.
    pub(crate) async fn export(&self, path: &str) -> Result<(u64, u64, Duration)> {
        const TAIL: usize = 64;
        let start = Instant::now();
        let mut response = self.get(path).send().await?.error_for_status()?;
        let (mut bytes, mut tail) = (0_u64, Vec::new());
        while let Some(chunk) = response.chunk().await? {
            bytes += u64::try_from(chunk.len())?;
            let end = chunk.len().saturating_sub(TAIL);
            tail.extend_from_slice(chunk.get(end..).unwrap_or_default());
            tail.drain(..tail.len().saturating_sub(TAIL));
        }
        let took = start.elapsed();
        let end = String::from_utf8_lossy(&tail);
        let mark = end.trim_end().rsplit('\n').next().unwrap_or_default();
        let rows = mark.strip_prefix("#END,COMPLETE,").and_then(|rows| rows.parse().ok());
        ensure!(rows.is_some(), "the export did not end complete but with `{mark}`");
        Ok((rows.unwrap_or_default(), bytes, took))
    }
}
