//! Several processes on one limit, and an observer in the database that sees every row change.

use std::collections::HashMap;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use testkit::{ReplicaProcess, TestDatabase, wait_until};
use tokio_postgres::Client;

use crate::fixture::{PATIENCE, database, live, wait_for_live};

/// A hundred thousand claims take a while on two busy cores.
const CLAIMERS_PATIENCE: Duration = Duration::from_mins(10);

/// A program of `examples/`, which cargo builds beside this test.
pub(crate) fn example(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.parent().unwrap().parent().unwrap().join("examples").join(name)
}

fn claimer(database: &str, arguments: &str) -> ReplicaProcess {
    let mut command = Command::new(example("claimer"));
    command.arg(database).args(arguments.split_whitespace());
    ReplicaProcess::start(command)
}

/// Starts so many claimers, lets them go together, and adds up what they report.
async fn run(database: &str, processes: usize, arguments: &str) -> HashMap<String, u64> {
    let arguments = format!("{arguments} --together {processes}");
    let claimers: Vec<_> = (0..processes).map(|_| claimer(database, &arguments)).collect();
    let mut sum = HashMap::new();
    for claimer in claimers {
        let line = wait_until("a claimer's figures", CLAIMERS_PATIENCE, || async {
            claimer.lines().into_iter().find(|line| line.starts_with("granted="))
        })
        .await;
        for (name, value) in line.split(' ').filter_map(|figure| figure.split_once('=')) {
            *sum.entry(name.to_owned()).or_insert(0) += value.parse::<u64>().unwrap();
        }
        claimer.wait().await;
    }
    sum
}

/// An observer that shares no code with the limits: a trigger writes down every grant and every
/// release with its moment. A grant's moment lies after the commit of whatever freed its place, so
/// the largest number of overlapping permits is exact.
async fn observe(client: &Client) {
    client
        .batch_execute(
            "create unlogged table observed (at timestamptz, change int4, user_id text);
             create function observe() returns trigger language plpgsql as $$
             begin
                 if old.permit is not null and old.ends_at > clock_timestamp()
                     and new.permit is distinct from old.permit then
                     insert into observed values (clock_timestamp(), -1, old.user_id);
                 end if;
                 if new.permit is not null and new.permit is distinct from old.permit then
                     insert into observed values (clock_timestamp(), 1, new.user_id);
                 end if;
                 return null;
             end $$;
             create trigger observe after update on limits.heavy_permit
             for each row execute function observe()",
        )
        .await
        .unwrap();
}

/// The most permits that ever overlapped: of one user, and of all.
async fn most_at_once(client: &Client) -> (i64, i64) {
    let row = client
        .query_one(
            "select max(of_user), max(of_all) from (
                select sum(change) over (partition by user_id order by at, change) as of_user,
                    sum(change) over (order by at, change) as of_all
                from observed) running",
            &[],
        )
        .await
        .unwrap();
    (row.get(0), row.get(1))
}

async fn housekeeping(database: &TestDatabase) -> tokio::task::JoinHandle<()> {
    let client = database.client().await;
    tokio::spawn(
        async move { while client.execute("select limits.sweep_v1(10)", &[]).await.is_ok() {} },
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn as_many_claimers_as_the_users_cap_are_all_admitted_while_housekeeping_runs() {
    let database = database().await;
    let sweeping = housekeeping(&database).await;
    let figures =
        run(&database.url(), 4, "--clients 4 --users 1 --cap 16 --installation 32 --claims 25000")
            .await;
    sweeping.abort();
    assert_eq!(figures["granted"], 100_000, "{figures:?}");
    assert_eq!(figures["refused"] + figures["undecided"] + figures["failed"], 0, "{figures:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn as_many_claimers_as_the_installations_cap_are_all_admitted_while_housekeeping_runs() {
    let database = database().await;
    let sweeping = housekeeping(&database).await;
    let figures =
        run(&database.url(), 4, "--clients 4 --users 4 --cap 100 --installation 16 --claims 25000")
            .await;
    sweeping.abort();
    assert_eq!(figures["granted"], 100_000, "{figures:?}");
    assert_eq!(figures["refused"] + figures["undecided"] + figures["failed"], 0, "{figures:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn more_claimers_than_the_users_cap_never_exceed_it_and_every_refusal_is_proved() {
    let database = database().await;
    let client = database.client().await;
    observe(&client).await;
    let figures = run(
        &database.url(),
        4,
        "--clients 4 --users 1 --cap 5 --installation 32 --claims 2500 --hold-ms 1",
    )
    .await;
    assert_eq!(figures["granted"] + figures["refused"], 10_000, "{figures:?}");
    assert!(figures["refused"] > 0 && figures["unproved"] == 0, "{figures:?}");
    assert_eq!(most_at_once(&client).await.0, 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn more_claimers_than_the_installations_cap_never_exceed_it_and_every_refusal_is_proved() {
    let database = database().await;
    let client = database.client().await;
    observe(&client).await;
    let figures = run(
        &database.url(),
        4,
        "--clients 4 --users 16 --cap 3 --installation 6 --claims 2500 --hold-ms 1",
    )
    .await;
    assert_eq!(figures["granted"] + figures["refused"], 10_000, "{figures:?}");
    assert!(figures["refused"] > 0 && figures["unproved"] == 0, "{figures:?}");
    let (of_user, of_all) = most_at_once(&client).await;
    assert_eq!(of_all, 6);
    assert!(of_user <= 3, "half of the installation is the most that one user had: {of_user}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_replicas_permits_come_back_at_bound_and_margin_and_not_earlier() {
    let database = database().await;
    let client = database.client().await;
    let arguments = "--clients 2 --users 1 --cap 2 --claims 1000 --hold-ms 60000 --bound-ms 2000 --margin-ms 1000";
    let replica = claimer(&database.url(), arguments);
    wait_for_live(&client, 2).await;
    replica.kill_9();
    replica.wait().await;
    // Free means lapsed: from the last grant, bound plus margin by the database's own clock.
    let row = wait_until("the permits lapsed", PATIENCE, || async {
        let row = client
            .query_one(
                "select count(*) filter (where ends_at > clock_timestamp()),
                    bool_and(clock_timestamp() - granted_at >= interval '3 s'),
                    bool_and(ends_at - granted_at between interval '3 s' and interval '3.1 s')
                 from limits.heavy_permit where permit is not null",
                &[],
            )
            .await
            .unwrap();
        (row.get::<_, i64>(0) == 0).then_some(row)
    })
    .await;
    assert!(row.get::<_, bool>(1) && row.get::<_, bool>(2));
    let heavy = crate::fixture::connect(&database, crate::fixture::WORK, 8).await;
    let _one = crate::fixture::granted(&heavy, &crate::fixture::WORK, "user-0").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_paused_past_its_lease_stops_its_work_and_harms_nobody_when_it_wakes() {
    let database = database().await;
    let client = database.client().await;
    let arguments =
        "--clients 2 --users 1 --cap 2 --claims 2 --hold-ms 60000 --bound-ms 1000 --margin-ms 300";
    let replica = claimer(&database.url(), arguments);
    wait_for_live(&client, 2).await;
    replica.pause().await;
    wait_for_live(&client, 0).await;
    let two = pg_limits::Endpoint::new("work", 2, Duration::from_mins(1));
    let heavy = crate::fixture::connect(&database, two, 64).await;
    let _successors = (
        crate::fixture::granted(&heavy, &two, "user-0").await,
        crate::fixture::granted(&heavy, &two, "user-0").await,
    );
    replica.resume();
    // The work under both leases was stopped, though it had most of a minute to go.
    replica.wait_for_line(|line| line.starts_with("granted=2 stopped=2 ")).await;
    replica.wait().await;
    assert_eq!(live(&client).await, 2, "the late releases freed nobody");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_previous_claim_function_and_a_new_one_count_together() {
    let database = database().await;
    let client = database.client().await;
    observe(&client).await;
    // What the next version will look like: another name and one more parameter, the same rows.
    client
        .batch_execute(
            "do $do$
             begin
                 execute replace(
                     replace(pg_get_functiondef('limits.claim_v1'::regproc), 'claim_v1', 'claim_v2'),
                     'p_margin_ms bigint', 'p_margin_ms bigint, p_note text');
             end $do$",
        )
        .await
        .unwrap();
    let next = tokio::spawn({
        let database = database.url();
        let client = database_client(&database).await;
        async move {
            let mut granted = 0;
            for turn in 0..2000 {
                let id = uuid::Uuid::now_v7();
                let row = client
                    .query_one(
                        "select outcome, scope, slot, cap, live
                         from limits.claim_v2($1, 'work', 'user-0', null, 30000, 300, $2)",
                        &[&id, &format!("turn {turn}")],
                    )
                    .await;
                // Until the first replica has registered, nobody may claim.
                let Ok(row) = row else { continue };
                if row.get::<_, &str>(0) == "granted" {
                    granted += 1;
                    let (scope, slot): (&str, i32) = (row.get(1), row.get(2));
                    client
                        .execute("select limits.release_v1($1, $2, $3)", &[&scope, &slot, &id])
                        .await
                        .unwrap();
                } else {
                    assert!(row.get::<_, i32>(4) >= row.get::<_, i32>(3));
                }
            }
            granted
        }
    });
    let figures = run(
        &database.url(),
        2,
        "--clients 4 --users 1 --cap 3 --installation 32 --claims 1500 --hold-ms 1",
    )
    .await;
    assert!(next.await.unwrap() > 0 && figures["granted"] > 0 && figures["unproved"] == 0);
    assert_eq!(most_at_once(&client).await.0, 3);
}

async fn database_client(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// Starts a claimer whose wall clock is off, and proves that it is.
async fn claimer_off_by(database: &str, minutes: i64, arguments: &str) -> ReplicaProcess {
    let mut command = Command::new("faketime");
    command.args(["-m", "-f", &format!("{minutes:+}m")]);
    command.env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
    command.arg(example("claimer")).arg(database).args(arguments.split_whitespace());
    let replica = ReplicaProcess::start(command);
    let line = replica.wait_for_line(|line| line.starts_with("unix-time=")).await;
    let theirs: i64 = line.trim_start_matches("unix-time=").parse().unwrap();
    let ours = uuid::Uuid::now_v7().get_timestamp().unwrap().to_unix().0;
    let off = theirs - i64::try_from(ours).unwrap();
    assert!((off - minutes * 60).abs() < 60, "the clock should be {minutes} minutes off: {off} s");
    replica
}

#[tokio::test(flavor = "multi_thread")]
async fn replicas_whose_clocks_are_five_minutes_off_keep_the_cap_and_the_leases() {
    let database = database().await;
    let client = database.client().await;
    observe(&client).await;
    let arguments = "--clients 4 --users 1 --cap 3 --installation 32 --claims 500 --hold-ms 1 \
        --together 2 --say-time";
    let url = database.url();
    let (early, late) =
        tokio::join!(claimer_off_by(&url, -5, arguments), claimer_off_by(&url, 5, arguments));
    for replica in [early, late] {
        let line = replica.wait_for_line(|line| line.starts_with("granted=")).await;
        assert!(line.contains(" stopped=0 ") && line.contains(" unproved=0 "), "{line}");
        assert!(!line.starts_with("granted=0 "), "{line}");
    }
    assert_eq!(most_at_once(&client).await.0, 3);
    // One that is killed leaves leases that end by the database's clock, whatever its own said.
    let arguments = "--clients 2 --users 1 --cap 3 --installation 32 --claims 9 --hold-ms 60000 \
        --bound-ms 1000 --margin-ms 500 --say-time";
    let replica = claimer_off_by(&url, 5, arguments).await;
    wait_for_live(&client, 2).await;
    replica.kill_9();
    wait_for_live(&client, 0).await;
}
