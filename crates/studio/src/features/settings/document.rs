//! Settings as the API shows them.

use axum::Json;
use axum::response::{IntoResponse as _, Response};
use http::{HeaderValue, header};
use serde::Serialize;

use super::kept::KeptSettings;
use crate::platform::in_force::{self, InForce, Mode, Unit, Value, catalogue};
use crate::platform::problem::{ApiResult, Problem};
use crate::platform::timestamp;

/// Every setting that changes at run time.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[schema(as = RuntimeSettings)]
pub(super) struct Settings {
    /// The number of the last change; also the `ETag`, which a change may pass as `If-Match`.
    #[schema(example = "17")]
    version: String,
    settings: Vec<Setting>,
}

/// One setting: a whole number with its range and unit, or one of a few words.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = RuntimeSetting)]
struct Setting {
    #[schema(example = "sql_console.per_user")]
    name: &'static str,
    /// In force on every replica within two seconds of its change.
    #[schema(value_type = RuntimeValue)]
    value: Value,
    /// What it is until somebody changes it, and after it was set to null.
    #[schema(value_type = RuntimeValue)]
    default: Value,
    /// Of a number: the least, the most, and what it counts.
    minimum: Option<u64>,
    maximum: Option<u64>,
    unit: Option<Unit>,
    /// Of a word: those it may be.
    choices: Option<&'static [Mode]>,
    meaning: &'static str,
    /// When somebody changed it last, and who; null when nobody has.
    changed_at: Option<String>,
    changed_by: Option<String>,
}

/// A whole number, or a word.
#[derive(Serialize, utoipa::ToSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "names the schema of values")]
pub(super) enum RuntimeValue {
    Number(u64),
    Word(Mode),
}

impl Settings {
    pub(super) fn new(in_force: &InForce, kept: &KeptSettings) -> Self {
        let settings = catalogue::ALL.iter().map(|setting| Setting::new(in_force, kept, *setting));
        Self { version: kept.version().to_string(), settings: settings.collect() }
    }

    pub(super) fn respond(self) -> ApiResult<Response> {
        let tag = HeaderValue::from_str(&format!("\"{}\"", self.version))
            .map_err(|error| Problem::internal(&error))?;
        Ok(([(header::ETAG, tag)], Json(self)).into_response())
    }
}

impl Setting {
    fn new(in_force: &InForce, kept: &KeptSettings, setting: in_force::Setting) -> Self {
        let changed = kept.change(setting);
        let (range, unit, choices) = match setting {
            in_force::Setting::Number(number) => {
                (Some(in_force.range(number)), Some(number.unit), None)
            }
            in_force::Setting::Switch(switch) => (None, None, Some(switch.choices())),
        };
        Self {
            name: setting.name(),
            value: kept.value(in_force, setting),
            default: in_force.value(setting, None),
            minimum: range.map(|(minimum, _)| minimum),
            maximum: range.map(|(_, maximum)| maximum),
            unit,
            choices,
            meaning: setting.meaning(),
            changed_at: changed.map(|change| timestamp::text(change.at.0)),
            changed_by: changed.map(|change| change.by.clone()),
        }
    }
}
