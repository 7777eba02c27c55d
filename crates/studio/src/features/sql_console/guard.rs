//! Whether the console is open for a role: it has an address, and the set-up holds.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use http::StatusCode;
use tokio_postgres::Config;

use super::{address, console_roles};
use crate::app::App;
use crate::platform::access::Role;
use crate::platform::problem::{ApiResult, Problem};

/// How long a set-up that was found to hold is believed.
const BELIEVED: Duration = Duration::from_mins(1);

/// When the set-up was last found to hold. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct SetUpSeen(Arc<Mutex<Option<Instant>>>);

impl SetUpSeen {
    fn is_recent(&self) -> bool {
        let seen = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        seen.is_some_and(|seen| seen.elapsed() < BELIEVED)
    }

    fn set(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }
}

/// The login under which queries of that role run.
///
/// # Errors
///
/// A 503 problem when the console is off, or the set-up does not hold and was not waived.
pub(super) async fn login(app: &App, role: Role) -> ApiResult<Config> {
    let url = address(&app.settings, role)
        .ok_or_else(|| off("No address is set for the console's login roles."))?;
    let config: Config = url.parse().map_err(|error| Problem::internal(&error))?;
    if app.settings.console.accept_ast_check_alone || app.console.is_recent() {
        return Ok(config);
    }
    let roles =
        console_roles::from_settings(&app.settings).map_err(|error| Problem::internal(&error))?;
    let client = app.pools.main().await?;
    let findings = console_roles::verify(&client, &roles).await?;
    let blocking: Vec<_> = findings.iter().filter(|finding| finding.is_blocking).collect();
    if let Some(first) = blocking.first() {
        tracing::warn!(findings = blocking.len(), first = %first, "The SQL console stays off");
        return Err(off(
            "Its login roles may do more, or less, than they should; `studio config check` says what.",
        ));
    }
    app.console.set();
    Ok(config)
}

fn off(detail: &str) -> Problem {
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "console-off", "The SQL console is off")
        .detail(detail)
}
