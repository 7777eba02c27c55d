//! A test process for testkit's own tests to kill: it starts what its argument says, writes where
//! that is, and then waits to be killed without a chance to clean up.

#![expect(clippy::print_stdout, reason = "tells the test what to look at")]

use std::process::Command;

use testkit::ReplicaProcess;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let started = std::env::args().nth(1);
    let replica;
    if started.as_deref() == Some("cluster") {
        println!("{}", testkit::cluster().await.folder().display());
    } else {
        let mut command = Command::new("sleep");
        command.arg("600");
        replica = ReplicaProcess::start(command);
        println!("{}", replica.id());
    }
    std::future::pending::<()>().await;
}
