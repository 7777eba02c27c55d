//! The demonstration: a whole installation from one command, and the trial of its limit.

use std::process::{Command, Output};

use testkit::ReplicaProcess;

fn studio(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_studio"));
    command.args(arguments).env_clear();
    // PostgreSQL may have to be found on it.
    if let Some(path) = option_env!("PATH") {
        command.env("PATH", path);
    }
    command
}

async fn output(mut command: Command) -> Output {
    tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap()
}

/// Two ports that are free now.
fn ports() -> String {
    let sockets: [_; 2] =
        std::array::from_fn(|_| std::net::TcpListener::bind("127.0.0.1:0").unwrap());
    sockets.map(|socket| socket.local_addr().unwrap().port().to_string()).join(",")
}

#[tokio::test]
async fn a_demonstration_shows_a_limit_that_holds_and_survives_being_killed() {
    const UP: &str = "Ctrl-C stops everything";
    let folder = tempfile::Builder::new().prefix("studio-demo-").tempdir().unwrap();
    // The server drops root, and must still reach its folder.
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(folder.path(), open).unwrap();
    let path = folder.path().to_str().unwrap();
    let ports = ports();
    let run = ["demo", "run", "--folder", path, "--ports", &ports, "--events", "200000"];

    let demo = ReplicaProcess::start(studio(&run));
    demo.wait_for_line(|line| line.contains(UP)).await;
    assert!(demo.lines().iter().any(|line| line.starts_with("Wrote 200000 audit events")));

    let shown = output(studio(&["demo", "show", "--folder", path])).await;
    let text = crate::bed::text(&shown);
    assert!(shown.status.success(), "{text}");
    assert!(text.contains("refused: 2 under way, the user's own limit"), "{text}");
    assert!(text.contains("refused: 1 under way, the user's own limit"), "{text}");
    assert!(text.contains("the limit of 2 held over all replicas"), "{text}");

    demo.kill_9();
    demo.wait().await;
    let again = ReplicaProcess::start(studio(&run));
    again.wait_for_line(|line| line.contains(UP)).await;
    // With the data of before.
    assert!(!again.lines().iter().any(|line| line.starts_with("Wrote ")), "{:?}", again.lines());
    again.terminate();
    let status = again.wait().await;
    assert!(status.success(), "{status}: {:#?}", again.lines());
}

#[tokio::test]
async fn a_trial_that_meets_no_limit_fails() {
    let bed = crate::bed::Bed::new().await;
    bed.account("anna", studio::platform::access::Role::Operator).await;
    let replica = bed.replica().await;
    let mut trial =
        studio(&["try-limit", "--url", &replica.base, "--name", "anna", "--requests", "1"]);
    trial.env("STUDIO_TRY_PASSWORD", crate::bed::PASSWORD);
    let shown = output(trial).await;
    let text = crate::bed::text(&shown);
    assert_eq!(shown.status.code(), Some(1), "{text}");
    assert!(text.contains("Nothing was refused"), "{text}");
}
