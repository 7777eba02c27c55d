//! `GET /api/v1/me` by token: with the limits on tokens, and with the token's look-up alone.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use bench::{Account, Installation, Verdicts, median};
use futures_util::future::try_join_all;
use reqwest::header;
use serde_json::{Value, json};

/// Clients at one time, each with a connection that it keeps.
const CLIENTS: usize = 16;

/// Enough for a run that nothing is refused.
const ROOMY: [(&str, &str); 3] = [
    ("api_request_window.token", "1000000"),
    ("api_request_window.user", "1000000"),
    ("request_in_flight.token", "1000"),
];

pub(crate) async fn measure(
    installation: &Installation,
    run: Duration,
    rounds: usize,
    verdicts: &mut Verdicts,
) -> Result<()> {
    for (name, value) in ROOMY {
        set(installation, name, value).await?;
    }
    let replica = installation.serve().await?;
    let base = replica.address.as_str();
    let tokens = tokens(base, &installation.account).await?;
    let one: Vec<String> = tokens.iter().take(1).cycle().take(CLIENTS).cloned().collect();
    for (what, tokens) in [("of one token", &one), ("each with a token of its own", &tokens)] {
        let (mut ratios, mut limited, mut plain) = (vec![], vec![], vec![]);
        for _ in 0..rounds {
            switch(installation, base, tokens, "off").await?;
            let without = rate(base, tokens, run).await?;
            switch(installation, base, tokens, "enforce").await?;
            let with = rate(base, tokens, run).await?;
            ratios.push(with / without);
            limited.push(with);
            plain.push(without);
        }
        println!(
            "GET /api/v1/me, {CLIENTS} clients {what}: {:.0}/s with both limits, {:.0}/s with the look-up alone",
            median(limited),
            median(plain)
        );
        let what =
            format!("a token's request with its limits, of one without, {CLIENTS} clients {what}");
        verdicts.at_least(&what, median(ratios), 0.7);
    }
    replica.stop().await
}

async fn set(installation: &Installation, name: &str, value: &str) -> Result<()> {
    let client = installation.client().await?;
    client.execute(include_str!("setting.sql"), &[&name, &value]).await?;
    Ok(())
}

/// Switches the limits and waits until the replica has heard of it: its answers tell.
async fn switch(
    installation: &Installation,
    base: &str,
    tokens: &[String],
    mode: &str,
) -> Result<()> {
    for name in ["api_request_window.mode", "request_in_flight.mode"] {
        set(installation, name, mode).await?;
    }
    let client = reqwest::Client::builder().no_proxy().build()?;
    let token = tokens.first().context("no token")?;
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        let answer = client.get(format!("{base}/api/v1/me")).bearer_auth(token).send().await?;
        if answer.headers().contains_key("ratelimit") == (mode != "off") {
            return Ok(());
        }
        ensure!(Instant::now() < deadline, "the replica did not hear of `{mode}`");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// A token for each client, all of one account.
async fn tokens(base: &str, account: &Account) -> Result<Vec<String>> {
    let client = reqwest::Client::builder().no_proxy().build()?;
    let post = |path: &str, body: Value| {
        client.post(format!("{base}{path}")).header(header::ORIGIN, base).json(&body)
    };
    let signed_in =
        post("/api/v1/session", json!({ "name": account.name, "password": account.password }))
            .send()
            .await?
            .error_for_status()?;
    let cookie = signed_in.headers().get(header::SET_COOKIE).context("no cookie")?.clone();
    let mut tokens = vec![];
    for number in 0..CLIENTS {
        let body = json!({ "name": format!("client {number}"), "grants": ["sql.query"] });
        let made = post("/api/v1/tokens", body).header(header::COOKIE, &cookie).send().await?;
        let made: Value = serde_json::from_slice(&made.error_for_status()?.bytes().await?)?;
        tokens.push(made.get("secret").and_then(Value::as_str).context("no secret")?.to_owned());
    }
    Ok(tokens)
}

/// Answers a second, one client a token; every answer must be a success.
async fn rate(base: &str, tokens: &[String], run: Duration) -> Result<f64> {
    let start = Instant::now();
    let clients = tokens.iter().map(|token| {
        let (url, token) = (format!("{base}/api/v1/me"), token.clone());
        let client = tokio::spawn(async move {
            let client = reqwest::Client::builder().no_proxy().build()?;
            let mut answers = 0_u32;
            while start.elapsed() < run {
                let answer = client.get(&url).bearer_auth(&token).send().await?;
                answer.error_for_status()?.bytes().await?;
                answers += 1;
            }
            anyhow::Ok(answers)
        });
        async move { client.await? }
    });
    let answers: u32 = try_join_all(clients.collect::<Vec<_>>()).await?.into_iter().sum();
    Ok(f64::from(answers) / start.elapsed().as_secs_f64())
}
