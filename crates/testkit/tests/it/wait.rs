use std::{
    future::pending,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use testkit::wait_until;

#[tokio::test]
async fn a_state_that_comes_is_seen_with_its_value() {
    let looks = AtomicUsize::new(0);
    let seen = wait_until("the fourth look", Duration::from_secs(20), || async {
        let look = looks.fetch_add(1, Ordering::SeqCst);
        (look == 3).then_some(look)
    })
    .await;
    assert_eq!(seen, 3);
}

#[tokio::test]
async fn a_state_already_there_is_seen_at_once() {
    wait_until("nothing in particular", Duration::ZERO, || async { true }).await;
}

#[tokio::test]
#[should_panic(expected = "for a state that never comes, in vain after")]
async fn a_state_that_never_comes_fails_with_its_description() {
    wait_until("a state that never comes", Duration::from_millis(30), || async { false }).await;
}

#[tokio::test]
#[should_panic(expected = "for an answer, and look 1 did not answer")]
async fn a_look_that_hangs_fails_too() {
    wait_until("an answer", Duration::from_millis(30), pending::<bool>).await;
}
