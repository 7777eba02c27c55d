//! The limit `login_attempt`: wrong passwords by name with network, by network, and by name over all networks.

use std::time::Duration;

use http::StatusCode;

use super::account::{self, Account, AccountName};
use super::client_address::ClientAddress;
use super::heavy::{Attempt, Attempted, LimitsError, Throttle, Throttled, is_first_this_minute};
use super::in_force::Mode;
use super::in_force::catalogue::login_attempt;
use super::problem::{ApiResult, Problem};
use crate::app::App;

/// How long a password waits for a thread to be checked on: with a connection's wait and the check well within what its
/// attempt is reserved for.
const PLACE_WAIT: Duration = Duration::from_secs(8);

/// The names of the throttles in metrics and rows; the first is also the limit's.
const OF_NAME_IN_NETWORK: &str = "login_attempt";
const OF_NETWORK: &str = "login_attempt_network";
const OF_NAME: &str = "login_attempt_name";

/// The account of a name, if the password is its own. A wrong one counts against the name and the client's network,
/// and so does any for a name that nobody has or whose account is disabled: all get the same answer after the same
/// work.
///
/// # Errors
/// 429 while too many were wrong, without looking at this one; 503 when it could not be checked or counted.
///
/// # Cancel safety
/// A check that has begun goes on and is counted: whoever leaves without waiting for the answer has made his guess.
pub async fn check(
    app: &App,
    name: AccountName,
    client: ClientAddress,
    password: String,
) -> ApiResult<Option<Account>> {
    let attempt = admit(app, &name, client).await?;
    let counted = check_and_count(app.clone(), attempt, name, password);
    app.tasks.spawn(counted).await.map_err(|error| Problem::internal(&error))?
}

/// What could not be checked, or not be counted, is neither right nor wrong.
async fn check_and_count(
    app: App,
    attempt: Attempt,
    name: AccountName,
    password: String,
) -> ApiResult<Option<Account>> {
    let place = tokio::time::timeout(PLACE_WAIT, app.passwords.place())
        .await
        .map_err(|_elapsed| LimitsError::Undecided)??;
    // The connection goes back before the password is checked, which takes long.
    let found = { account::find(&app.pools.main().await?, &name).await? };
    if attempt.remaining().is_zero() {
        return Err(LimitsError::Undecided.into());
    }
    let account = place.check(found, password).await?;
    match &account {
        Some(_) => attempt.succeeded().await?,
        None => attempt.failed().await?,
    }
    Ok(account)
}

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
        throttle(OF_NAME_IN_NETWORK, &login_attempt::FAILURES, &login_attempt::WITHIN_SECONDS)
            .clears_on_success(),
        throttle(
            OF_NETWORK,
            &login_attempt::NETWORK_FAILURES,
            &login_attempt::NETWORK_WITHIN_SECONDS,
        ),
        throttle(OF_NAME, &login_attempt::NAME_FAILURES, &login_attempt::NAME_WITHIN_SECONDS),
    ]
}

/// Admits a password to its check, or gives the problem to answer with: the same for every name, known or not.
async fn admit(app: &App, name: &AccountName, client: ClientAddress) -> ApiResult<Attempt> {
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
                tell(app, throttled, &network, true);
            }
            Ok(attempt)
        }
        Attempted::Throttled(throttled) => {
            tell(app, &throttled, &network, false);
            Err(Problem::new(
                StatusCode::TOO_MANY_REQUESTS,
                "login-throttled",
                "Too many failed sign-ins",
            )
            .retry_after(throttled.retry_after))
        }
    }
}

/// Counts a refusal by whose it was, and tells of it once a network and minute. It does not name the account: people
/// type their passwords there.
fn tell(app: &App, throttled: &Throttled, network: &str, is_shadow: bool) {
    let scope = match throttled.name {
        OF_NETWORK => "network",
        OF_NAME => "name",
        _ => "name_in_network",
    };
    app.refusals.count(OF_NAME_IN_NETWORK, scope, is_shadow);
    if is_first_this_minute(&format!("{} {network}", throttled.name)) {
        let what = if is_shadow { "would have been" } else { "was" };
        tracing::info!(throttle = throttled.name, network, "A sign-in {what} throttled");
    }
}
