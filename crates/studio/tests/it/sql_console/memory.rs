//! Whatever a query gives, the replica's memory grows by less than 64 MiB.

use std::fs;

use super::{ask, bed, long_text, question};
use crate::bed::{Replica, Session};

const GROWTH_KIB: u64 = 64 << 10;

/// A figure of the process's status file, in KiB.
fn kib(replica: &Replica, name: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", replica.process.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("the line is there");
    line.trim_start_matches(':').trim().trim_end_matches(" kB").parse().expect("a number")
}

/// Runs the query and gives by how much resident memory was above `before` at its highest.
async fn growth(replica: &Replica, browser: &Session, before: u64, sql: &str) -> u64 {
    // Forgets the highest figure so far.
    fs::write(format!("/proc/{}/clear_refs", replica.process.id()), "5").unwrap();
    let response = question(browser, sql).send().await.unwrap();
    assert_eq!(response.status(), 200);
    let body = response.bytes().await.unwrap();
    assert!(body.len() <= 32 << 20);
    kib(replica, "VmHWM").saturating_sub(before)
}

#[tokio::test]
async fn huge_values_many_values_and_many_columns_stay_within_64_mib() {
    let bed = bed().await;
    let replica = bed.replica().await;
    let browser = replica.sign_in("viewer").await;
    ask(&browser, "select 1").await;
    let before = kib(&replica, "VmRSS");
    let long = long_text();
    let columns = |value: &str| vec![value; 1_600].join(", ");
    for (name, sql) in [
        (
            "a value of 900 MB",
            format!("{long} select string_agg(d.x, '') from d, n where n.i <= 1000"),
        ),
        ("10,000 values of 1 MB", format!("{long} select d.x || d.x from d, n")),
        (
            "10,000 values of 1 MB, all escaped",
            format!("{long} select replace(d.x, 'x', chr(1)) from d, n"),
        ),
        ("1,600 columns of 1 MB", format!("{long} select {} from d, n", columns("d.x"))),
        ("1,600 columns of 900 bytes", format!("{long} select {} from a, n", columns("a.x"))),
        ("values of four bytes a character", {
            format!("{long} select replace(d.x, 'xxxx', chr(128512)) from d, n where n.i < 100")
        }),
    ] {
        let growth = growth(&replica, &browser, before, &sql).await;
        assert!(growth < GROWTH_KIB, "{name}: resident memory grew by {growth} KiB");
    }
}

#[tokio::test]
async fn deep_and_long_texts_stay_within_64_mib() {
    let bed = bed().await;
    let replica = bed.replica().await;
    let browser = replica.sign_in("viewer").await;
    ask(&browser, "select 1").await;
    let before = kib(&replica, "VmRSS");
    fs::write(format!("/proc/{}/clear_refs", replica.process.id()), "5").unwrap();
    for sql in [
        format!("select '{}'", "x".repeat(65 << 10)),
        format!("select {}1{}", "(".repeat(10_000), ")".repeat(10_000)),
        format!("select {}true", "not ".repeat(10_000)),
        format!("select 1{}", " + 1".repeat(10_000)),
        format!("select {}1{}", "(select ".repeat(4_000), ")".repeat(4_000)),
        format!("select {}1{}", "case when ".repeat(4_000), " end".repeat(4_000)),
        format!("select {}1", "1,".repeat(32_000)),
        format!("select 1 in ({}1)", "-1,".repeat(21_000)),
    ] {
        let (status, answer) = ask(&browser, &sql).await;
        assert!(status == 400 || status == 200, "{answer}");
    }
    let growth = kib(&replica, "VmHWM").saturating_sub(before);
    assert!(growth < GROWTH_KIB, "resident memory grew by {growth} KiB");
}
