//! Settings that change at run time, the same on every replica.
//!
//! What somebody changed is a row of `studio.setting`. Every replica reads the table again at least every second, and
//! at once when the bus says so: the bus makes it fast, the reading makes it sure. A replica that cannot read goes on
//! with what it read last.
//!
//! Consumers name a constant of [`catalogue`]:
//!
//! ```ignore
//! let failures = app.in_force.number(&login_attempt::FAILURES);
//! let is_shadow = app.in_force.mode(&login_attempt::MODE) == Mode::Shadow;
//! ```

pub mod catalogue;
mod first;
mod setting;

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use deadpool_postgres::Pool;
use tokio_util::sync::CancellationToken;

use self::catalogue::{ENDPOINTS, login_attempt};
use self::first::First;
pub use self::setting::{Kept, Mode, Number, Setting, Switch, Unit, Value};
use super::bus::News;
use super::database;
use super::heavy::Endpoint;
use super::problem::Problem;
use crate::settings::Settings;

const READ: &str = include_str!("queries/read.sql");

/// How often the table is read without being asked to. Less than the second that is promised, by what a read takes.
const EVERY: Duration = Duration::from_millis(750);

/// The settings in force on this replica. Clones share everything; reading one takes no time.
#[derive(Debug, Clone)]
pub struct InForce(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// A connection of its own: a replica whose pool is used up must still learn that a cap was lowered.
    reader: Pool,
    first: First,
    changed: RwLock<Arc<Changed>>,
}

/// What was changed, as this replica read it last.
#[derive(Debug, Default, PartialEq, Eq)]
struct Changed {
    numbers: HashMap<&'static str, u64>,
    modes: HashMap<&'static str, Mode>,
}

impl InForce {
    /// The first values, until [`Self::read`] has read what was changed.
    ///
    /// # Errors
    /// When no connection can be prepared.
    pub fn new(settings: &Settings, database: tokio_postgres::Config) -> anyhow::Result<Self> {
        let reader = database::pool(database, 1)?;
        let (first, changed) = (First::of(settings), RwLock::default());
        Ok(Self(Arc::new(Inner { reader, first, changed })))
    }

    /// A number in force. A cap of permits is what Studio last set: claims read it in the limits' database.
    pub fn number(&self, number: &Number) -> u64 {
        let changed = self.changed().numbers.get(number.name).copied();
        changed.unwrap_or_else(|| self.first(number))
    }

    /// A number in force that is a time in seconds.
    pub fn seconds(&self, number: &Number) -> Duration {
        Duration::from_secs(self.number(number))
    }

    /// A mode in force.
    pub fn mode(&self, switch: &Switch) -> Mode {
        self.changed().modes.get(switch.name).copied().unwrap_or(Mode::Enforce)
    }

    /// A declared endpoint with its bounds in force. One without settings is as it was declared.
    pub fn endpoint(&self, declared: &Endpoint) -> Endpoint {
        let Some(own) = ENDPOINTS.iter().find(|own| own.endpoint == declared.name()) else {
            return *declared;
        };
        let seconds = self.changed().numbers.get(own.time_bound.name).copied();
        let bound = seconds.map_or_else(|| self.0.first.time(own), Duration::from_secs);
        let per_user = u32::try_from(self.number(own.per_user)).unwrap_or(u32::MAX);
        Endpoint::new(declared.name(), per_user, bound)
            .rows(self.number(own.rows))
            .bytes(self.number(own.bytes))
    }

    /// What a number is until somebody changes it: its default, or what this replica's file says.
    pub fn first(&self, number: &Number) -> u64 {
        self.0.first.number(number)
    }

    /// What a setting is when the table has this text for it, or none.
    pub fn value(&self, setting: Setting, text: Option<&str>) -> Value {
        let changed = text.and_then(|text| self.parse(setting, text)).map(|(_, value)| value);
        changed.unwrap_or_else(|| match setting {
            Setting::Number(number) => Value::Number(self.first(number)),
            Setting::Switch(_) => Value::Mode(Mode::Enforce),
        })
    }

    /// The least and the most that a number may be set to here.
    pub fn range(&self, number: &Number) -> (u64, u64) {
        self.0.first.range(number)
    }

    fn changed(&self) -> Arc<Changed> {
        Arc::clone(&self.0.changed.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Reads what was changed, once.
    ///
    /// # Errors
    /// A 503 or 500 problem; what was read before stays in force.
    pub async fn read(&self) -> Result<(), Problem> {
        let connection = self.0.reader.get().await?;
        let statement = connection.prepare_cached(READ).await?;
        let mut changed = Changed::default();
        for row in connection.query(&statement, &[]).await? {
            // A name that this program does not know belongs to a newer one, or to an older.
            let (name, value): (&str, &str) = (row.try_get("name")?, row.try_get("value")?);
            match catalogue::find(name).and_then(|setting| self.parse(setting, value)) {
                Some((name, Value::Number(value))) => drop(changed.numbers.insert(name, value)),
                Some((name, Value::Mode(mode))) => drop(changed.modes.insert(name, mode)),
                None => tracing::debug!(name, value, "A setting is not known here"),
            }
        }
        let mut place = self.0.changed.write().unwrap_or_else(PoisonError::into_inner);
        if **place != changed {
            tracing::info!(?changed, "Settings changed");
            *place = Arc::new(changed);
        }
        Ok(())
    }

    /// A value as the table keeps it. One that an older program allowed is held within the range of this one.
    fn parse(&self, setting: Setting, text: &str) -> Option<(&'static str, Value)> {
        match setting {
            Setting::Number(number) => {
                let value: u64 = text.parse().ok()?;
                let (minimum, maximum) = self.range(number);
                Some((number.name, Value::Number(value.clamp(minimum, maximum))))
            }
            Setting::Switch(switch) => {
                let mode = Mode::parse(text).filter(|mode| switch.choices().contains(mode))?;
                Some((switch.name, Value::Mode(mode)))
            }
        }
    }

    /// Keeps what is in force up to date, until shutdown.
    pub async fn keep(self, mut news: News, shutdown: CancellationToken) {
        let mut ticks = tokio::time::interval(EVERY);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = shutdown.cancelled() => return,
                _ = ticks.tick() => {}
                () = news.come() => {}
            }
            // Logged where it became a problem; the next round tries again.
            self.read().await.ok();
        }
    }
}

/// Whether a whole set of numbers makes sense together; the sentence says what does not.
pub fn fit_together(number: impl Fn(&'static Number) -> u64) -> Vec<(&'static str, String)> {
    let mut wrong = Vec::new();
    let longest = number(&login_attempt::LONGEST_WAIT_SECONDS);
    if number(&login_attempt::FIRST_WAIT_SECONDS) > longest {
        let name = login_attempt::FIRST_WAIT_SECONDS.name;
        wrong.push((name, format!("The first wait is at most the longest, {longest}.")));
    }
    if number(&login_attempt::FORGOTTEN_AFTER_SECONDS) < longest {
        let name = login_attempt::FORGOTTEN_AFTER_SECONDS.name;
        wrong.push((
            name,
            format!("A wait is not forgotten before it is over: at least {longest}."),
        ));
    }
    wrong
}
