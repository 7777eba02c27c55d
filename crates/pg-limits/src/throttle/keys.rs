//! The keys of one attempt, as the statements want them.

use std::sync::Arc;
use std::time::Duration;

use super::Throttle;
use crate::LimitsError;

/// The longest key in bytes: well within what an index takes.
const KEY_BYTES: usize = 1024;

/// What one attempt is counted by: a few throttles, each with a key.
#[derive(Clone, Debug)]
pub(super) struct Keys(Arc<[(Throttle, String)]>);

impl Keys {
    pub(super) fn new(keys: &[(Throttle, &str)]) -> Result<Self, LimitsError> {
        for (at, (throttle, key)) in keys.iter().enumerate() {
            let name = throttle.name();
            if key.is_empty() || key.len() > KEY_BYTES {
                return Err(LimitsError::Config(format!(
                    "a key of throttle `{name}` has 1 to {KEY_BYTES} bytes"
                )));
            }
            if keys.iter().skip(at + 1).any(|(other, same)| other.name() == name && same == key) {
                return Err(LimitsError::Config(format!(
                    "throttle `{name}` is given the same key twice"
                )));
            }
        }
        Ok(Self(keys.iter().map(|(throttle, key)| (*throttle, (*key).to_owned())).collect()))
    }

    /// Those of the keys that the flags choose.
    pub(super) fn chosen(&self, flags: &[bool]) -> Self {
        Self(
            self.0
                .iter()
                .zip(flags)
                .filter(|(_, chosen)| **chosen)
                .map(|(k, _)| k.clone())
                .collect(),
        )
    }

    /// By the place that the database counts from 1.
    pub(super) fn at(&self, place: i32) -> Option<&(Throttle, String)> {
        self.0.get(usize::try_from(place).ok()?.checked_sub(1)?)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &(Throttle, String)> {
        self.0.iter()
    }

    pub(super) fn names(&self) -> Vec<&'static str> {
        self.each(Throttle::name)
    }

    pub(super) fn keys(&self) -> Vec<&str> {
        self.0.iter().map(|(_, key)| key.as_str()).collect()
    }

    pub(super) fn failures(&self) -> Vec<i32> {
        self.each(|throttle| i32::try_from(throttle.failures).unwrap_or(i32::MAX))
    }

    pub(super) fn each<T>(&self, value: impl Fn(&Throttle) -> T) -> Vec<T> {
        self.0.iter().map(|(throttle, _)| value(throttle)).collect()
    }
}

pub(super) fn millis(length: Duration) -> i64 {
    i64::try_from(length.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIGN_IN: Throttle = Throttle::new("sign-in", 5, Duration::from_mins(15));

    #[test]
    fn keys_that_cannot_be_counted_are_refused() {
        assert!(Keys::new(&[(SIGN_IN, "ada"), (SIGN_IN, "grace")]).is_ok());
        let long = "x".repeat(KEY_BYTES + 1);
        for bad in
            [&[(SIGN_IN, "")][..], &[(SIGN_IN, &long)], &[(SIGN_IN, "ada"), (SIGN_IN, "ada")]]
        {
            assert!(matches!(Keys::new(bad), Err(LimitsError::Config(_))), "{bad:?}");
        }
    }
}
