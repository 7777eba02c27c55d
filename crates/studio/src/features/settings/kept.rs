//! What is kept of the settings: Studio's table, and the caps and their modes in the limits' database.

use std::collections::HashMap;

use tokio_postgres::GenericClient;

use crate::platform::heavy::{CapInForce, HeavyRequests, LimitsError};
use crate::platform::in_force::{InForce, Kept, Mode, Setting, Value};
use crate::platform::paging::Microseconds;
use crate::platform::problem::ApiResult;

const READ: &str = include_str!("queries/read.sql");

/// The last change of one setting.
#[derive(Debug)]
pub(super) struct Change {
    /// None after it went back to its first value.
    value: Option<String>,
    pub(super) at: Microseconds,
    pub(super) by: String,
}

/// What is kept, as one moment showed it.
#[derive(Debug)]
pub(super) struct KeptSettings {
    changes: HashMap<String, Change>,
    version: i64,
    caps: Vec<CapInForce>,
}

impl KeptSettings {
    /// Reads Studio's table; `caps` are what the limits' database has.
    pub(super) async fn read(
        client: &impl GenericClient,
        caps: Vec<CapInForce>,
    ) -> ApiResult<Self> {
        let (mut changes, mut version) = (HashMap::new(), 0);
        for row in client.query(READ, &[]).await? {
            version = version.max(row.try_get("revision")?);
            let change = Change {
                value: row.try_get("value")?,
                at: row.try_get("changed_at")?,
                by: row.try_get("changed_by")?,
            };
            changes.insert(row.try_get("name")?, change);
        }
        Ok(Self { changes, version, caps })
    }

    /// The number of the last change, 0 before the first.
    pub(super) fn version(&self) -> i64 {
        self.version
    }

    /// The last change of a setting.
    pub(super) fn change(&self, setting: Setting) -> Option<&Change> {
        self.changes.get(setting.name())
    }

    /// The value in force. What claims read is what the limits' database has, whatever Studio's table says.
    pub(super) fn value(&self, in_force: &InForce, setting: Setting) -> Value {
        let table = || in_force.value(setting, self.text(setting));
        let cap = |name| self.caps.iter().find(|cap| cap.name == name);
        match setting.kept() {
            Kept::Here => table(),
            Kept::CapOf(name) => {
                cap(name).map_or_else(table, |cap| Value::Number(cap.in_force.into()))
            }
            Kept::ShadowOf(name) => cap(name).map_or_else(table, |cap| Value::Mode(mode_of(cap))),
        }
    }

    /// Whether all that keeps a setting has this value, or none.
    pub(super) fn has(&self, setting: Setting, wanted: Option<Value>) -> bool {
        let is_in_table = self.text(setting) == wanted.map(Value::to_text).as_deref();
        let cap = |name| self.caps.iter().find(|cap| cap.name == name);
        is_in_table
            && match setting.kept() {
                Kept::Here => true,
                Kept::CapOf(name) => cap(name).and_then(|cap| cap.set) == wanted.and_then(cap_of),
                Kept::ShadowOf(name) => {
                    let is = cap(name).map_or(ENFORCE, |cap| Value::Mode(mode_of(cap)));
                    is == wanted.unwrap_or(ENFORCE)
                }
            }
    }

    fn text(&self, setting: Setting) -> Option<&str> {
        self.changes.get(setting.name()).and_then(|change| change.value.as_deref())
    }
}

const ENFORCE: Value = Value::Mode(Mode::Enforce);

fn cap_of(value: Value) -> Option<u32> {
    match value {
        Value::Number(number) => Some(u32::try_from(number).unwrap_or(u32::MAX)),
        Value::Mode(_) => None,
    }
}

/// Writes a value, or none, to the limits' database, if that keeps the setting.
///
/// # Errors
/// When it cannot be reached; the value may then be in force or not.
pub(super) async fn write_to_limits(
    heavy: &HeavyRequests,
    setting: Setting,
    value: Option<Value>,
) -> Result<(), LimitsError> {
    match setting.kept() {
        Kept::Here => Ok(()),
        Kept::CapOf(name) => heavy.set_cap(name, value.and_then(cap_of)).await,
        Kept::ShadowOf(name) => {
            heavy.set_shadow(name, value == Some(Value::Mode(Mode::Shadow))).await
        }
    }
}

fn mode_of(cap: &CapInForce) -> Mode {
    if cap.is_shadow { Mode::Shadow } else { Mode::Enforce }
}
