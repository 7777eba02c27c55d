//! Fifty sign-ins at once, spread over three replicas.

use std::sync::Arc;

use http::StatusCode;
use serde_json::json;
use studio::platform::access::Role;
use tokio::sync::Barrier;

use super::{TURN, checks, fail, three};
use crate::bed::{Answer, Bed, PASSWORD, Replica};

/// As many sign-ins at once; their answers.
async fn at_once(replicas: &[Replica; 3], names: &[String], password: &'static str) -> Vec<Answer> {
    let together = Arc::new(Barrier::new(names.len()));
    let tasks: Vec<_> = names
        .iter()
        .enumerate()
        .map(|(number, name)| {
            let (nobody, together) = (replicas[number % 3].nobody(), Arc::clone(&together));
            let body = json!({ "name": name, "password": password });
            tokio::spawn(async move {
                together.wait().await;
                nobody.post("/api/v1/session", &body).await
            })
        })
        .collect();
    let mut answers = Vec::new();
    for task in tasks {
        answers.push(task.await.unwrap());
    }
    answers
}

fn with_status(answers: &[Answer], status: StatusCode) -> usize {
    answers.iter().filter(|answer| answer.status == status).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn parallel_guesses_get_no_more_password_checks_than_the_limit() {
    let _turn = TURN.lock().await;
    for earlier in [0, 4] {
        let bed = Bed::new().await;
        bed.account("anna", Role::Viewer).await;
        let replicas = three(&bed).await;
        for failure in 0..earlier {
            fail(&replicas[failure % 3], "anna").await;
        }
        let names = vec!["anna".to_owned(); 50];
        let answers = at_once(&replicas, &names, "wrong").await;
        let wrong = with_status(&answers, StatusCode::UNAUTHORIZED);
        assert_eq!(wrong, 5 - earlier);
        assert_eq!(with_status(&answers, StatusCode::TOO_MANY_REQUESTS), 50 - wrong);
        assert_eq!(checks(&replicas).await, 5);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn parallel_valid_sign_ins_all_succeed() {
    let _turn = TURN.lock().await;
    for earlier in [0, 4] {
        let bed = Bed::new().await;
        bed.account("anna", Role::Viewer).await;
        let replicas = three(&bed).await;
        for failure in 0..earlier {
            fail(&replicas[failure % 3], "anna").await;
        }
        let names = vec!["anna".to_owned(); 50];
        let answers = at_once(&replicas, &names, PASSWORD).await;
        assert_eq!(with_status(&answers, StatusCode::OK), 50);
        assert_eq!(checks(&replicas).await, 50 + u64::try_from(earlier).unwrap());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn parallel_valid_sign_ins_of_many_people_in_one_network_all_succeed() {
    let _turn = TURN.lock().await;
    let bed = Bed::new().await;
    let names: Vec<String> = (0..50).map(|number| format!("person-{number}")).collect();
    bed.account("person-0", Role::Viewer).await;
    // One hash for all: fifty would take longer than the test.
    bed.client()
        .await
        .batch_execute(
            "insert into studio.account (id, name, role, password_hash)
             select gen_random_uuid(), 'person-' || n, role, password_hash
             from studio.account, generate_series(1, 49) n",
        )
        .await
        .unwrap();
    let replicas = three(&bed).await;
    for name in names.iter().take(5) {
        for failure in 0..4 {
            fail(&replicas[failure % 3], name).await;
        }
    }
    // Ten failures are left to the network: its people sign in ten at a time.
    let answers = at_once(&replicas, &names, PASSWORD).await;
    assert_eq!(with_status(&answers, StatusCode::OK), 50);
}
