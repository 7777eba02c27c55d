//! Requests by API token: who asks, and whether the limits let the request in.
//!
//! Of a token that this replica has seen before, the limits are asked while it is looked up: they cost the request no
//! time of their own. Should the token have ended meanwhile, the request is taken back out of them.

use std::time::Duration;

use futures_util::future::join;

use super::App;
use crate::platform::access::SignedIn;
use crate::platform::api_requests;
use crate::platform::heavy::{Admitted, Entry, LimitsError};
use crate::platform::problem::Problem;
use crate::platform::token::{self, TokenSecret};

/// Lets a request in that asks by token. `time` is the longest that it may take.
///
/// # Errors
/// 401 when the token is not valid, 429 when a limit is reached, 503 when either cannot be decided.
pub(super) async fn admit(
    app: &App,
    secret: &TokenSecret,
    request_id: &str,
    time: Duration,
) -> Result<(SignedIn, Admitted), Problem> {
    let look_up = async { token::find(app, secret, request_id).await?.ok_or_else(token::invalid) };
    let (who, entered) = if let Some(owner) = app.token_owners.of(secret) {
        let entering = api_requests::enter(app, &owner, secret.id(), time);
        let (found, entered) = join(look_up, entering).await;
        match found {
            Ok(who) => (who, entered),
            Err(problem) => {
                app.token_owners.forget(secret);
                take_back(app, entered);
                return Err(problem);
            }
        }
    } else {
        let who = look_up.await?;
        app.token_owners.remember(secret, who.user());
        let entered = api_requests::enter(app, &who.user(), secret.id(), time).await;
        (who, entered)
    };
    let admitted = api_requests::admit(app, secret.id(), entered)?;
    Ok((who, admitted))
}

/// Off the request's path, since its answer does not depend on it.
fn take_back(app: &App, entered: Result<Entry, LimitsError>) {
    if let Ok(Entry::Admitted(admitted)) = entered {
        app.tasks.spawn(async move {
            if let Err(error) = admitted.give_back().await {
                tracing::warn!(%error, "A refused token's request stays counted until its window ends");
            }
        });
    }
}
