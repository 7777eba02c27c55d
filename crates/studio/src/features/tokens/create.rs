//! `POST /api/v1/tokens`: a new token.

use axum::Json as Answer;
use axum::extract::State;
use http::StatusCode;
use serde::Deserialize;
use serde_json::json;
use uuid::Uuid;

use super::{LIVE_TOKENS, Token, TokenWithSecret, target};
use crate::app::App;
use crate::platform::access::{Permission, Role, SignedIn};
use crate::platform::audit::Action;
use crate::platform::problem::{ApiResult, Problem, ProblemDocument};
use crate::platform::request::Json;
use crate::platform::token::{TokenId, TokenSecret};

const LOCK_OWNER: &str = include_str!("queries/lock_owner.sql");
const COUNT_LIVE: &str = include_str!("queries/count_live.sql");
const CREATE: &str = include_str!("queries/create.sql");

/// The longest name, in characters.
const NAME_CHARACTERS: usize = 100;

/// How long a token lives, in days, unless its maker says less or more, and at most.
const DAYS: u32 = 30;
const MOST_DAYS: u32 = 90;

/// What is asked for.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct NewToken {
    /// What it is for; 1 to 100 characters.
    #[schema(example = "nightly report")]
    name: String,
    /// Permissions, none that you do not have yourself.
    #[schema(example = json!(["audit.read"]))]
    grants: Vec<String>,
    /// 1 to 90 days from now; 30 unless given.
    #[schema(minimum = 1, maximum = 90)]
    expires_in_days: Option<u32>,
}

/// A wish that makes sense.
#[derive(Debug)]
struct Wish {
    name: String,
    grants: Vec<Permission>,
    days: i32,
}

impl Wish {
    fn parse(asked: &NewToken) -> Result<Self, Problem> {
        let name = asked.name.trim();
        let is_name = !name.is_empty()
            && name.chars().count() <= NAME_CHARACTERS
            && !name.chars().any(char::is_control);
        if !is_name {
            return Err(Problem::bad_parameter(
                "A token has a name of 1 to 100 characters, none of them a control character.",
            ));
        }
        let days = asked.expires_in_days.unwrap_or(DAYS);
        if !(1..=MOST_DAYS).contains(&days) {
            return Err(Problem::bad_parameter("`expiresInDays` is between 1 and 90."));
        }
        let mut grants = Vec::new();
        for name in &asked.grants {
            let permission = Permission::parse(name).ok_or_else(|| {
                Problem::bad_parameter(
                    "`grants` are names of permissions, as GET /api/v1/me lists them.",
                )
            })?;
            if !grants.contains(&permission) {
                grants.push(permission);
            }
        }
        let days = i32::try_from(days).map_err(|error| Problem::internal(&error))?;
        Ok(Self { name: name.to_owned(), grants, days })
    }
}

/// Makes a token of your own. Its secret is in this answer and nowhere else.
#[utoipa::path(
    post,
    path = "/api/v1/tokens",
    tag = "tokens",
    request_body = NewToken,
    responses(
        (status = 201, description = "The token with its secret", body = TokenWithSecret),
        (status = 400, description = "A name, a permission or a time that cannot be", body = ProblemDocument),
        (status = 403, description = "A grant that you do not have (`permission` names it), or no session", body = ProblemDocument),
        (status = 409, description = "You have 50 live tokens", body = ProblemDocument),
    )
)]
pub(super) async fn create(
    State(app): State<App>,
    who: SignedIn,
    Json(asked): Json<NewToken>,
) -> ApiResult<(StatusCode, Answer<TokenWithSecret>)> {
    let wish = Wish::parse(&asked)?;
    let id = TokenId(Uuid::now_v7());
    let secret = TokenSecret::random(id);
    let mut connection = app.pools.main().await?;
    let transaction = connection.transaction().await?;
    let statement = transaction.prepare_cached(LOCK_OWNER).await?;
    let owner = transaction.query_opt(&statement, &[&who.account]).await?;
    // The role as it is under the lock, which may be lower than the one that the request came in with.
    let role = owner.and_then(|row| Role::parse(row.get(0)));
    let role = role.ok_or_else(Problem::sign_in_required)?;
    if let Some(missing) = wish.grants.iter().find(|grant| !role.permissions().contains(grant)) {
        return Err(Problem::forbidden(missing.name()).detail(format!(
            "A token may do no more than its owner, whose role lacks the permission {}.",
            missing.name()
        )));
    }
    let statement = transaction.prepare_cached(COUNT_LIVE).await?;
    let live: i64 = transaction.query_one(&statement, &[&who.account]).await?.get(0);
    if live >= i64::from(LIVE_TOKENS) {
        return Err(too_many());
    }
    let grants: Vec<&str> = wish.grants.iter().map(|permission| permission.name()).collect();
    let statement = transaction.prepare_cached(CREATE).await?;
    let row = transaction
        .query_one(
            &statement,
            &[&id.0, &who.account, &wish.name, &secret.hash(), &grants, &wish.days],
        )
        .await?;
    let token = Token::read(&row)?;
    let detail = json!({ "name": token.name, "grants": grants, "expiresAt": token.expires_at });
    app.audit.record_in(&transaction, &who, Action::TokenCreate, &target(id), detail).await?;
    transaction.commit().await?;
    let secret = secret.expose().to_owned();
    Ok((StatusCode::CREATED, Answer(TokenWithSecret { token, secret })))
}

fn too_many() -> Problem {
    Problem::new(StatusCode::CONFLICT, "too-many-tokens", "You have as many tokens as one may")
        .detail(format!("An account has at most {LIVE_TOKENS} live tokens. Revoke one first."))
        .member("limit", LIVE_TOKENS)
}

#[cfg(test)]
mod tests {
    use super::{NewToken, Permission, Wish};

    fn wish(name: &str, grants: &[&str], days: Option<u32>) -> Result<Wish, u16> {
        let grants = grants.iter().map(|grant| (*grant).to_owned()).collect();
        Wish::parse(&NewToken { name: name.to_owned(), grants, expires_in_days: days })
            .map_err(|problem| problem.status().as_u16())
    }

    #[test]
    fn wishes_are_cleaned_and_have_defaults() {
        let made = wish(" report ", &["audit.read", "audit.read"], None).unwrap();
        assert_eq!((made.name.as_str(), made.days), ("report", 30));
        assert_eq!(made.grants, [Permission::AuditRead]);
        assert_eq!(wish("x", &[], Some(90)).unwrap().days, 90);
        assert!(wish(&"\u{e9}".repeat(100), &[], Some(1)).is_ok());
    }

    #[test]
    fn wishes_that_cannot_be_are_refused() {
        for (name, grants, days) in [
            ("", &[][..], None),
            (" \u{3000}", &[], None),
            ("a\nb", &[], None),
            ("a\0", &[], None),
            (&"x".repeat(101), &[], None),
            ("x", &["everything"], None),
            ("x", &["AUDIT.READ"], None),
            ("x", &[], Some(0)),
            ("x", &[], Some(91)),
            ("x", &[], Some(u32::MAX)),
        ] {
            assert_eq!(wish(name, grants, days).unwrap_err(), 400, "{name:?} {grants:?} {days:?}");
        }
    }
}
