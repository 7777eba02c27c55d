//! What somebody wants to change: every value read and checked before anything is written.

use serde_json::{Map, Value as Json};

use super::kept::KeptSettings;
use crate::platform::in_force::{InForce, Setting, Value, catalogue, fit_together};
use crate::platform::problem::Problem;
use http::StatusCode;

/// A change that makes sense by itself: settings with their values, none for those that go back to their first.
#[derive(Debug)]
pub(super) struct Wanted(Vec<(Setting, Option<Value>)>);

/// What is wrong with a setting: its name, and a sentence.
type Wrong = (String, String);

impl Wanted {
    /// Reads every value.
    ///
    /// # Errors
    /// A 400 problem that names each that is none.
    pub(super) fn read(in_force: &InForce, asked: &Map<String, Json>) -> Result<Self, Problem> {
        let (mut wanted, mut wrong) = (Vec::new(), Vec::new());
        for (name, value) in asked {
            match catalogue::find(name).map(|setting| (setting, read(in_force, setting, value))) {
                Some((setting, Ok(value))) => wanted.push((setting, value)),
                Some((_, Err(sentence))) => wrong.push((name.clone(), sentence)),
                None => wrong.push((name.clone(), "There is no such setting.".to_owned())),
            }
        }
        if wrong.is_empty() { Ok(Self(wanted)) } else { Err(invalid(wrong)) }
    }

    /// Checks that all settings fit together once these are changed.
    ///
    /// # Errors
    /// A 400 problem that names each that does not.
    pub(super) fn check(&self, in_force: &InForce, kept: &KeptSettings) -> Result<(), Problem> {
        let wrong = fit_together(|number| {
            let setting = Setting::Number(number);
            let wanted = self.0.iter().find(|(own, _)| own.name() == number.name);
            let value = match wanted {
                Some((_, Some(value))) => *value,
                Some((_, None)) => in_force.value(setting, None),
                None => kept.value(in_force, setting),
            };
            match value {
                Value::Number(number) => number,
                Value::Mode(_) => 0,
            }
        });
        if wrong.is_empty() {
            return Ok(());
        }
        Err(invalid(
            wrong.into_iter().map(|(name, sentence)| (name.to_owned(), sentence)).collect(),
        ))
    }

    /// Those that are not so already.
    pub(super) fn changes(self, kept: &KeptSettings) -> Vec<(Setting, Option<Value>)> {
        self.0.into_iter().filter(|(setting, value)| !kept.has(*setting, *value)).collect()
    }
}

fn read(in_force: &InForce, setting: Setting, asked: &Json) -> Result<Option<Value>, String> {
    if asked.is_null() {
        return Ok(None);
    }
    match setting {
        Setting::Number(number) => {
            let (minimum, maximum) = in_force.range(number);
            let value = asked.as_u64().filter(|value| (minimum..=maximum).contains(value));
            value
                .map(|value| Some(Value::Number(value)))
                .ok_or_else(|| format!("A whole number between {minimum} and {maximum}, or null."))
        }
        Setting::Switch(switch) => {
            let choices = switch.choices();
            let mode = asked
                .as_str()
                .and_then(|word| choices.iter().copied().find(|mode| mode.name() == word));
            mode.map(|mode| Some(Value::Mode(mode))).ok_or_else(|| {
                let words: Vec<&str> = choices.iter().map(|mode| mode.name()).collect();
                format!("One of {}, or null.", words.join(", "))
            })
        }
    }
}

/// How many settings the problem names at most: names that are none can be many.
const NAMED: usize = 100;

fn invalid(mut wrong: Vec<Wrong>) -> Problem {
    let count = wrong.len();
    wrong.truncate(NAMED);
    let names: Vec<&str> = wrong.iter().map(|(name, _)| name.as_str()).collect();
    let detail = format!("Nothing was changed, because of {}.", names.join(", "));
    let errors: Vec<Json> = wrong
        .iter()
        .map(|(name, sentence)| serde_json::json!({ "name": name, "detail": sentence }))
        .collect();
    Problem::new(StatusCode::BAD_REQUEST, "invalid-settings", "The settings cannot be so")
        .detail(detail)
        .member("count", count)
        .member("errors", errors)
}
