//! Standbys follow, are promoted and start again.

use local_postgres::{LocalPostgresError, StopMode};

use crate::scratch;

#[tokio::test]
async fn a_standby_follows_and_is_promoted_when_its_primary_is_gone() {
    let folder = scratch::folder();
    let mut primary = scratch::start(&folder).await;
    let standby = primary.add_standby(folder.path().join("standby")).await.unwrap();
    assert_ne!(standby.port(), primary.port());
    scratch::run(primary.config("postgres"), "create table kept as select 7::bigint as n").await;
    let there = "select exists (select from pg_class where relname = 'kept')";
    scratch::until(standby.config("postgres"), there).await;
    scratch::until(standby.tcp_config("postgres"), "select pg_is_in_recovery()").await;

    primary.stop(StopMode::Immediate).await.unwrap();
    standby.promote().await.unwrap();
    scratch::run(standby.config("postgres"), "insert into kept values (8)").await;
    let sum = "select sum(n)::bigint from kept";
    assert_eq!(scratch::number(standby.config("postgres"), sum).await, 15);

    drop(standby);
    primary.start_again().await.unwrap();
    let again = primary.add_standby(folder.path().join("standby")).await.unwrap_err();
    assert!(matches!(again, LocalPostgresError::Promoted(_)), "{again}");
}

#[tokio::test]
async fn a_standby_goes_on_following_after_both_were_started_anew() {
    let folder = scratch::folder();
    let primary = scratch::start(&folder).await;
    let mut standby = primary.add_standby(folder.path().join("standby")).await.unwrap();
    standby.stop(StopMode::Fast).await.unwrap();
    scratch::run(primary.config("postgres"), "create table first ()").await;
    standby.start_again().await.unwrap();
    let first = "select exists (select from pg_class where relname = 'first')";
    scratch::until(standby.config("postgres"), first).await;

    drop((standby, primary));
    let primary = scratch::start(&folder).await;
    let standby = primary.add_standby(folder.path().join("standby")).await.unwrap();
    scratch::run(primary.config("postgres"), "create table second ()").await;
    let second = "select exists (select from pg_class where relname = 'second')";
    scratch::until(standby.config("postgres"), second).await;
}
