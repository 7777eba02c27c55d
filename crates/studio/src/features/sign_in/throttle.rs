//! The limit `login_attempt`: failed sign-ins by name with network, by network, and by name over all networks.

use std::time::Duration;

use http::StatusCode;

use crate::app::App;
use crate::platform::account::AccountName;
use crate::platform::client_address::ClientAddress;
use crate::platform::heavy::{Attempt, Attempted, Throttle, Throttled, is_first_this_minute};
use crate::platform::problem::{ApiResult, Problem};

/// A success clears what its owner alone can make succeed, and nothing that others share.
const NAME_IN_NETWORK: Throttle =
    Throttle::new("login_attempt", 5, Duration::from_mins(15)).clears_on_success();
const NETWORK: Throttle = Throttle::new("login_attempt_network", 30, Duration::from_mins(10));
const NAME: Throttle = Throttle::new("login_attempt_name", 100, Duration::from_hours(1));

/// Admits a sign-in to its check, or gives the problem to answer with: the same for every name, known or not.
///
/// # Errors
/// 429 while a key is blocked, 503 when that could not be decided.
pub(super) async fn admit(
    app: &App,
    name: &AccountName,
    client: ClientAddress,
) -> ApiResult<Attempt> {
    let network = client.network();
    // A network holds no space, so no name can be mistaken for another's network.
    let name_in_network = format!("{network} {}", name.as_str());
    let keys = [
        (NAME_IN_NETWORK, name_in_network.as_str()),
        (NETWORK, network.as_str()),
        (NAME, name.as_str()),
    ];
    match app.heavy.attempt(&keys).await? {
        Attempted::Admitted(attempt) => {
            if let Some(throttled) = attempt.would_be_throttled() {
                app.refusals.count(LIMIT, scope(throttled), true);
                tell(throttled, &network, "A sign-in would have been throttled");
            }
            Ok(attempt)
        }
        Attempted::Throttled(throttled) => {
            app.refusals.count(LIMIT, scope(&throttled), false);
            tell(&throttled, &network, "A sign-in was throttled");
            Err(Problem::new(
                StatusCode::TOO_MANY_REQUESTS,
                "login-throttled",
                "Too many failed sign-ins",
            )
            .retry_after(throttled.retry_after))
        }
    }
}

/// What refusals over time call the limit.
const LIMIT: &str = "login_attempt";

/// Whose limit it was.
fn scope(throttled: &Throttled) -> &'static str {
    match throttled.name {
        "login_attempt_network" => "network",
        "login_attempt_name" => "name",
        _ => "name-in-network",
    }
}

/// One event a network and minute. It does not name the account: people type their passwords there.
fn tell(throttled: &Throttled, network: &str, what: &'static str) {
    if is_first_this_minute(&format!("{} {network}", throttled.name)) {
        tracing::info!(throttle = throttled.name, network, "{what}");
    }
}
