//! Who may do what: all routes by all roles.

use http::StatusCode;
use studio::features;
use studio::platform::access::{Permission, Role};
use studio::platform::route::Access;

use crate::bed::{Bed, answer};

#[tokio::test]
async fn every_route_admits_the_roles_that_its_permission_names_and_no_other() {
    let bed = Bed::new().await;
    bed.accounts().await;
    let replica = bed.replica().await;
    let mut people = vec![(None, replica.nobody())];
    for role in Role::ALL {
        people.push((Some(role), replica.sign_in(role.name()).await));
    }
    for route in features::routes() {
        for (path, method) in route.operations() {
            // Signing out would end the sessions that the rest needs; it has a test of its own.
            if method == http::Method::DELETE && path == "/api/v1/session" {
                continue;
            }
            let address = path.replace("{suffix}", "internal");
            for (role, person) in &people {
                // A body that nobody could use: whoever is admitted gets no further than reading it.
                let mut request = person.request(method.clone(), &address);
                if method != http::Method::GET {
                    request = request.body("{}").header("content-type", "application/json");
                }
                let status = answer(request).await.status;
                let expected = match (route.access, role) {
                    (Access::SignedIn | Access::Needs(_), None) => Some(StatusCode::UNAUTHORIZED),
                    (Access::Public, _) | (Access::SignedIn, Some(_)) => None,
                    (Access::Needs(permission), Some(role)) => {
                        (!role.permissions().contains(&permission)).then_some(StatusCode::FORBIDDEN)
                    }
                };
                match expected {
                    Some(expected) => assert_eq!(status, expected, "{method} {path} by {role:?}"),
                    None => assert!(
                        status != StatusCode::UNAUTHORIZED && status != StatusCode::FORBIDDEN,
                        "{method} {path} by {role:?}: {status}"
                    ),
                }
            }
        }
    }
}

#[test]
fn each_role_may_do_all_that_the_one_before_it_may() {
    for roles in Role::ALL.windows(2) {
        for permission in roles[0].permissions() {
            assert!(roles[1].permissions().contains(permission), "{permission:?}");
        }
    }
    assert_eq!(Role::Administrator.permissions(), Permission::ALL);
}

#[tokio::test]
async fn holders_of_permits_are_shown_to_administrators_and_to_themselves() {
    let bed = Bed::new().await;
    bed.accounts().await;
    let replica = bed.replica().await;
    bed.large_events().await;
    let operator = replica.sign_in("operator").await;
    // Not read: the permit is held while the rest waits to be sent.
    let export = operator.request(http::Method::GET, "/api/v1/audit/export").send().await.unwrap();
    let shown = |name: &'static str| {
        let replica = &replica;
        async move { replica.sign_in(name).await.get("/api/v1/limits").await.json() }
    };
    for (name, holders) in [("operator", 1), ("viewer", 0), ("administrator", 1)] {
        let shown = shown(name).await;
        assert_eq!(shown["holders"].as_array().unwrap().len(), holders, "{name}: {shown}");
        let installation = shown["limits"]
            .as_array()
            .unwrap()
            .iter()
            .find(|limit| limit["name"] == "installation")
            .unwrap();
        assert_eq!((&installation["limit"], &installation["held"]), (&8.into(), &1.into()));
    }
    drop(export);
}
