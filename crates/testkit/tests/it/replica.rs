use std::{os::unix::process::ExitStatusExt, process::Command, time::Duration};

use testkit::{ReplicaProcess, wait_until};

fn shell(script: &str) -> Command {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", script]);
    command
}

/// State letter of a process, `None` once it is gone or only waits to be reaped.
fn state_of(pid: u32) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit(") ").next()?.chars().next().filter(|&state| state != 'Z' && state != 'X')
}

#[tokio::test]
async fn a_line_is_found_on_either_output_even_when_written_before_the_wait() {
    let replica = ReplicaProcess::start(shell("echo listening on 1; echo broken >&2; sleep 600"));
    assert_eq!(replica.wait_for_line(|line| line.contains("listening")).await, "listening on 1");
    assert_eq!(replica.wait_for_line(|line| line == "broken").await, "broken");
    assert_eq!(replica.lines().len(), 2);
    assert!(replica.ended().is_none());
}

#[tokio::test]
#[should_panic(expected = "ended without the line; its output:\nno such setting")]
async fn a_process_that_ends_without_the_line_fails_the_test_and_shows_its_output() {
    let replica = ReplicaProcess::start(shell("echo no such setting >&2; exit 2"));
    replica.wait_for_line(|line| line.contains("listening")).await;
}

#[tokio::test]
async fn the_last_line_of_an_ended_process_is_not_missed() {
    let replica = ReplicaProcess::start(shell("printf 'no line end'; exit 3"));
    assert_eq!(replica.wait().await.code(), Some(3));
    replica.wait_for_line(|line| line == "no line end").await;
}

#[tokio::test]
async fn a_killed_process_ends_by_sigkill_and_later_signals_do_nothing() {
    let replica = ReplicaProcess::start(shell("trap '' TERM; echo ready; sleep 600"));
    replica.wait_for_line(|line| line == "ready").await;
    replica.kill_9();
    assert_eq!(replica.wait().await.signal(), Some(9));
    replica.kill_9();
    replica.resume();
}

#[tokio::test]
async fn a_terminated_process_can_shut_down_in_its_own_way() {
    let script = "trap 'echo released; exit 7' TERM; echo ready; while :; do sleep 0.01; done";
    let replica = ReplicaProcess::start(shell(script));
    replica.wait_for_line(|line| line == "ready").await;
    replica.terminate();
    replica.wait_for_line(|line| line == "released").await;
    assert_eq!(replica.wait().await.code(), Some(7));
}

#[tokio::test]
async fn a_paused_process_stands_still_until_it_is_resumed() {
    let replica = ReplicaProcess::start(shell("while :; do echo beat; sleep 0.01; done"));
    replica.wait_for_line(|line| line == "beat").await;
    replica.pause().await;
    assert_eq!(state_of(replica.id()), Some('T'));
    let at_pause = replica.lines().len();
    replica.resume();
    wait_until("a beat after the pause", Duration::from_secs(20), || async {
        // Two more: one may have been in the pipe when the process was paused.
        replica.lines().len() > at_pause + 2
    })
    .await;
}

#[tokio::test]
async fn a_dropped_process_is_gone_with_the_program_it_started() {
    let replica = ReplicaProcess::start(shell("sleep 600 & echo $!; wait"));
    let started: u32 = replica.wait_for_line(|_| true).await.parse().unwrap();
    let pid = replica.id();
    drop(replica);
    assert_eq!(state_of(pid), None);
    wait_until("the started program to be gone", Duration::from_secs(20), || async {
        state_of(started).is_none()
    })
    .await;
}

#[tokio::test]
async fn a_replica_does_not_outlive_a_killed_test_process() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_to_be_killed"));
    command.arg("replica");
    let test_process = ReplicaProcess::start(command);
    let pid: u32 = test_process.wait_for_line(|_| true).await.parse().unwrap();
    assert!(state_of(pid).is_some());
    test_process.kill_9();
    wait_until("the replica to be gone", Duration::from_secs(20), || async {
        state_of(pid).is_none()
    })
    .await;
}
