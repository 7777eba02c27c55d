//! The limit `login_attempt`: failed sign-ins by name with network, by network, and by name over all networks.

use http::StatusCode;

use crate::app::App;
use crate::platform::account::AccountName;
use crate::platform::client_address::ClientAddress;
use crate::platform::heavy::{Attempt, Attempted, Throttle, Throttled, is_first_this_minute};
use crate::platform::in_force::Mode;
use crate::platform::in_force::catalogue::login_attempt;
use crate::platform::problem::{ApiResult, Problem};

/// The throttles as the settings have them at this moment: name in its network, network, name over all networks.
fn in_force(app: &App) -> [Throttle; 3] {
    let settings = &app.in_force;
    let throttle = |name, failures, within| {
        let failures = u32::try_from(settings.number(failures)).unwrap_or(u32::MAX);
        Throttle::new(name, failures, settings.seconds(within))
            .waits(
                settings.seconds(&login_attempt::FIRST_WAIT_SECONDS),
                settings.seconds(&login_attempt::LONGEST_WAIT_SECONDS),
            )
            .forgotten_after(settings.seconds(&login_attempt::FORGOTTEN_AFTER_SECONDS))
            .shadow(settings.mode(&login_attempt::MODE) == Mode::Shadow)
    };
    [
        // A success clears what its owner alone can make succeed, and nothing that others share.
        throttle("login_attempt", &login_attempt::FAILURES, &login_attempt::WITHIN_SECONDS)
            .clears_on_success(),
        throttle(
            "login_attempt_network",
            &login_attempt::NETWORK_FAILURES,
            &login_attempt::NETWORK_WITHIN_SECONDS,
        ),
        throttle(
            "login_attempt_name",
            &login_attempt::NAME_FAILURES,
            &login_attempt::NAME_WITHIN_SECONDS,
        ),
    ]
}

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
    let [of_name_in_network, of_network, of_name] = in_force(app);
    let keys = [
        (of_name_in_network, name_in_network.as_str()),
        (of_network, network.as_str()),
        (of_name, name.as_str()),
    ];
    match app.heavy.attempt(&keys).await? {
        Attempted::Admitted(attempt) => {
            if let Some(throttled) = attempt.would_be_throttled() {
                tell(throttled, &network, "A sign-in would have been throttled");
            }
            Ok(attempt)
        }
        Attempted::Throttled(throttled) => {
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

/// One event a network and minute. It does not name the account: people type their passwords there.
fn tell(throttled: &Throttled, network: &str, what: &'static str) {
    if is_first_this_minute(&format!("{} {network}", throttled.name)) {
        tracing::info!(throttle = throttled.name, network, "{what}");
    }
}
