//! What settings are until somebody changes them.

use std::time::Duration;

use super::catalogue::{EndpointSettings, INSTALLATION_CAP, audit_export};
use super::setting::Number;
use crate::settings::Settings;

/// First values that the file and the environment give.
#[derive(Debug)]
pub(super) struct First {
    installation_cap: u64,
    main_pool: u64,
    export_rows: u64,
    export_bytes: u64,
    /// The file has it to the millisecond.
    export_time: Duration,
}

impl First {
    pub(super) fn of(settings: &Settings) -> Self {
        let limits = &settings.limits;
        let longest = Duration::from_secs(audit_export::TIME_BOUND_SECONDS.maximum);
        Self {
            installation_cap: settings.installation_cap().into(),
            main_pool: settings.database.main_pool.into(),
            export_rows: limits.audit_export_rows,
            export_bytes: limits.audit_export_bytes,
            export_time: Duration::from_millis(limits.audit_export_ms).min(longest),
        }
    }

    pub(super) fn number(&self, number: &Number) -> u64 {
        if number.name == INSTALLATION_CAP.name {
            self.installation_cap
        } else if number.name == audit_export::ROWS.name {
            self.export_rows
        } else if number.name == audit_export::BYTES.name {
            self.export_bytes
        } else if number.name == audit_export::TIME_BOUND_SECONDS.name {
            self.export_time.as_secs() + u64::from(self.export_time.subsec_nanos() > 0)
        } else {
            number.default
        }
    }

    pub(super) fn time(&self, of: &EndpointSettings) -> Duration {
        if of.endpoint == audit_export::ALL.endpoint {
            return self.export_time;
        }
        Duration::from_secs(of.time_bound.default)
    }

    /// What the file allows may be set again, whatever the catalogue says.
    pub(super) fn range(&self, number: &Number) -> (u64, u64) {
        let first = self.number(number);
        let maximum =
            if number.name == INSTALLATION_CAP.name { self.main_pool } else { number.maximum };
        (number.minimum.min(first), maximum.max(first))
    }
}
