//! Who may do what: all routes by all roles.

use http::StatusCode;
use studio::features;
use studio::platform::access::{Permission, Role};
use studio::platform::route::Access;

use crate::bed::{self, Bed, answer};

/// Who asks: the role, and for a program what its token was granted.
#[derive(Debug, Clone)]
struct Caller {
    role: Option<Role>,
    grants: Option<Vec<Permission>>,
}

impl Caller {
    /// The refusal that the table gives this caller.
    fn refusal(&self, access: Access) -> Option<(StatusCode, &'static str)> {
        if access == Access::Public {
            return None;
        }
        let Some(role) = self.role else {
            return Some((StatusCode::UNAUTHORIZED, "sign-in-required"));
        };
        if self.grants.is_some() && access.is_session_only() {
            return Some((StatusCode::FORBIDDEN, "session-required"));
        }
        let permission = access.permission()?;
        let may = role.permissions().contains(&permission)
            && self.grants.as_ref().is_none_or(|grants| grants.contains(&permission));
        (!may).then_some((StatusCode::FORBIDDEN, "forbidden"))
    }
}

#[tokio::test]
async fn every_route_admits_whom_its_access_names_and_nobody_else() {
    let bed = Bed::new().await;
    bed.accounts().await;
    let replica = bed.replica().await;
    let mut callers = vec![(Caller { role: None, grants: None }, replica.nobody())];
    for role in Role::ALL {
        let caller = Caller { role: Some(role), grants: None };
        callers.push((caller, replica.sign_in(role.name()).await));
        // Also with more than the role has: what a token may is cut to it.
        for grants in [&[][..], &[Permission::AuditRead], &Permission::ALL] {
            let names: Vec<&str> = grants.iter().map(|permission| permission.name()).collect();
            let secret = bed.token(role.name(), &names).await;
            let caller = Caller { role: Some(role), grants: Some(grants.to_vec()) };
            callers.push((caller, replica.with_token(&secret)));
        }
    }
    for route in features::routes() {
        for (path, method) in route.operations() {
            // Signing out would end the sessions that the rest needs; it has a test of its own.
            let is_sign_out = method == http::Method::DELETE && path == "/api/v1/session";
            let address = bed::address_of(&path);
            for (caller, session) in &callers {
                if is_sign_out && caller.role.is_some() && caller.grants.is_none() {
                    continue;
                }
                // A body that nobody could use: whoever is admitted gets no further than reading it.
                let mut request = session.request(method.clone(), &address);
                if session.token.is_some() && route.access == Access::Public {
                    // What needs no sign-in knows no tokens, and asks for the origin.
                    request = request.header(http::header::ORIGIN, &session.base);
                }
                if method != http::Method::GET {
                    request = request.body("{}").header("content-type", "application/json");
                }
                let answer = answer(request).await;
                match caller.refusal(route.access) {
                    Some(expected) => {
                        let given = (answer.status, answer.problem());
                        let expected = (expected.0, expected.1.to_owned());
                        assert_eq!(given, expected, "{method} {path} by {caller:?}");
                    }
                    None => assert!(
                        answer.status != StatusCode::UNAUTHORIZED
                            && answer.status != StatusCode::FORBIDDEN,
                        "{method} {path} by {caller:?}: {}",
                        answer.text()
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
