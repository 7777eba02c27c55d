//! Every setting that changes at run time. Ceilings keep what was measured or promised elsewhere: rows and bytes that
//! an answer holds in memory go no higher than what its memory was measured with, and no time bound exceeds the 300 s
//! that the longest of them was declared with, or its own declaration.

use super::setting::Setting::{self, Number as N, Switch as S};
use super::setting::{Kept, Number, Switch, Unit};

const DAY: u64 = 86_400;
/// No heavy request runs longer: its lease, its connection and a shutdown's patience are made for this.
const LONGEST_BOUND: u64 = 300;

const fn number(
    name: &'static str,
    default: u64,
    range: (u64, u64),
    unit: Unit,
    meaning: &'static str,
) -> Number {
    let (minimum, maximum) = range;
    Number { name, default, minimum, maximum, unit, meaning, kept: Kept::Here }
}

const fn switch(name: &'static str, may_be_off: bool, meaning: &'static str) -> Switch {
    Switch { name, may_be_off, meaning, kept: Kept::Here }
}

/// The settings of one heavy endpoint.
#[derive(Debug, Clone, Copy)]
pub struct EndpointSettings {
    /// The endpoint.
    pub endpoint: &'static str,
    /// `<endpoint>.per_user`.
    pub per_user: &'static Number,
    /// `<endpoint>.mode`.
    pub mode: &'static Switch,
    /// `<endpoint>.time_bound_seconds`.
    pub time_bound: &'static Number,
    /// `<endpoint>.rows`.
    pub rows: &'static Number,
    /// `<endpoint>.bytes`.
    pub bytes: &'static Number,
}

macro_rules! endpoint {
    ($module:ident, $name:literal, per_user: $per_user:expr, seconds: $seconds:expr, rows: $rows:expr, bytes: $bytes:expr) => {
        #[doc = concat!("The settings of the endpoint `", $name, "`.")]
        pub mod $module {
            use super::super::setting::{Kept, Number, Switch, Unit};
            use super::{EndpointSettings, LONGEST_BOUND, number, switch};

            /// Requests of one user at one time.
            pub static PER_USER: Number = Number {
                kept: Kept::CapOf($name),
                ..number(
                    concat!($name, ".per_user"),
                    $per_user,
                    (0, 100),
                    Unit::Requests,
                    "How many of these requests one user may have under way at one time, on all replicas together; 0 refuses all.",
                )
            };
            /// Whether that cap refuses.
            pub static MODE: Switch = Switch {
                kept: Kept::ShadowOf($name),
                ..switch(
                    concat!($name, ".mode"),
                    false,
                    "Whether a user's own cap refuses, or only counts what it would have refused; the installation's cap and the half that one user may hold of it always refuse.",
                )
            };
            /// How long one may run.
            pub static TIME_BOUND_SECONDS: Number = number(
                concat!($name, ".time_bound_seconds"),
                $seconds,
                (1, LONGEST_BOUND),
                Unit::Seconds,
                "How long one request may work before it is stopped; its permit's lease is made of it.",
            );
            /// The most rows.
            pub static ROWS: Number = number(
                concat!($name, ".rows"),
                $rows.0,
                (1, $rows.1),
                Unit::Rows,
                "The most rows of one answer.",
            );
            /// The most bytes.
            pub static BYTES: Number = number(
                concat!($name, ".bytes"),
                $bytes.0,
                (64 << 10, $bytes.1),
                Unit::Bytes,
                "The most bytes of one answer.",
            );
            /// All of them.
            pub static ALL: EndpointSettings = EndpointSettings {
                endpoint: $name,
                per_user: &PER_USER,
                mode: &MODE,
                time_bound: &TIME_BOUND_SECONDS,
                rows: &ROWS,
                bytes: &BYTES,
            };
        }
    };
}

endpoint!(sql_console, "sql_console", per_user: 2, seconds: 30, rows: (10_000, 10_000), bytes: (32 << 20, 32 << 20));
endpoint!(audit_history, "audit_history", per_user: 4, seconds: 10, rows: (500, 500), bytes: (16 << 20, 16 << 20));
// A file is streamed: its length takes no memory.
endpoint!(audit_export, "audit_export", per_user: 1, seconds: 300, rows: (1_000_000, 100_000_000), bytes: (1 << 30, 1_u64 << 40));

/// The endpoints that have settings.
pub static ENDPOINTS: [&EndpointSettings; 3] =
    [&sql_console::ALL, &audit_history::ALL, &audit_export::ALL];

/// The cap that all heavy requests share. Its first value and its maximum come from the main pool's size.
pub static INSTALLATION_CAP: Number = Number {
    kept: Kept::CapOf("installation"),
    ..number(
        "installation.cap",
        8,
        (0, 32),
        Unit::Requests,
        "Heavy requests of all users at one time, on all replicas together: at most the connections of one replica's main pool; 0 refuses all.",
    )
};

/// The throttle of sign-ins.
pub mod login_attempt {
    use super::{DAY, Number, Switch, Unit, number, switch};

    /// Whether it refuses.
    pub static MODE: Switch = switch(
        "login_attempt.mode",
        false,
        "Whether too many failed sign-ins are refused, or only counted.",
    );
    /// Failures of one name from one network.
    pub static FAILURES: Number = number(
        "login_attempt.failures",
        5,
        (1, 1_000),
        Unit::Failures,
        "Failed sign-ins with one name from one network before the next must wait.",
    );
    /// The time in which they count.
    pub static WITHIN_SECONDS: Number = number(
        "login_attempt.within_seconds",
        900,
        (1, DAY),
        Unit::Seconds,
        "The time in which failures of one name from one network are counted together.",
    );
    /// The first wait.
    pub static FIRST_WAIT_SECONDS: Number = number(
        "login_attempt.first_wait_seconds",
        30,
        (1, 3_600),
        Unit::Seconds,
        "How long the first wait is; each later one is twice as long.",
    );
    /// The longest wait.
    pub static LONGEST_WAIT_SECONDS: Number = number(
        "login_attempt.longest_wait_seconds",
        900,
        (1, DAY),
        Unit::Seconds,
        "How long a wait grows at most.",
    );
    /// When failures are forgotten.
    pub static FORGOTTEN_AFTER_SECONDS: Number = number(
        "login_attempt.forgotten_after_seconds",
        DAY,
        (60, 30 * DAY),
        Unit::Seconds,
        "How long after the last failure all is forgotten, the length of the next wait included.",
    );
    /// Failures from one network.
    pub static NETWORK_FAILURES: Number = number(
        "login_attempt.network_failures",
        30,
        (1, 100_000),
        Unit::Failures,
        "Failed sign-ins from one network, with whatever names, before it must wait.",
    );
    /// The time in which they count.
    pub static NETWORK_WITHIN_SECONDS: Number = number(
        "login_attempt.network_within_seconds",
        600,
        (1, DAY),
        Unit::Seconds,
        "The time in which failures from one network are counted together.",
    );
    /// Failures of one name.
    pub static NAME_FAILURES: Number = number(
        "login_attempt.name_failures",
        100,
        (1, 100_000),
        Unit::Failures,
        "Failed sign-ins with one name, from whatever networks, before it must wait.",
    );
    /// The time in which they count.
    pub static NAME_WITHIN_SECONDS: Number = number(
        "login_attempt.name_within_seconds",
        3_600,
        (1, DAY),
        Unit::Seconds,
        "The time in which failures of one name are counted together.",
    );
}

/// The window of plugin uploads.
pub mod upload_window {
    use super::{DAY, Number, Switch, Unit, number, switch};

    /// Whether it refuses.
    pub static MODE: Switch = switch(
        "upload_window.mode",
        false,
        "Whether too many plugin uploads are refused, or only counted.",
    );
    /// Uploads of one user.
    pub static UPLOADS: Number = number(
        "upload_window.uploads",
        5,
        (0, 1_000),
        Unit::Uploads,
        "Plugin uploads of one user in a window; 0 refuses all.",
    );
    /// The window's length.
    pub static SECONDS: Number = number(
        "upload_window.seconds",
        3_600,
        (1, DAY),
        Unit::Seconds,
        "How long the window of uploads is.",
    );
}

/// The windows of requests by API token.
pub mod api_request_window {
    use super::{Number, Switch, Unit, number, switch};

    /// Whether they refuse.
    pub static MODE: Switch = switch(
        "api_request_window.mode",
        true,
        "Whether too many requests by API token are refused, only counted, or not counted at all.",
    );
    /// Requests of one token.
    pub static TOKEN: Number = number(
        "api_request_window.token",
        600,
        (0, 1_000_000),
        Unit::Requests,
        "Requests of one API token in a window; 0 refuses all.",
    );
    /// Requests of one user.
    pub static USER: Number = number(
        "api_request_window.user",
        1_200,
        (0, 1_000_000),
        Unit::Requests,
        "Requests of all API tokens of one user in a window; 0 refuses all.",
    );
    /// The window's length.
    pub static SECONDS: Number = number(
        "api_request_window.seconds",
        60,
        (1, 3_600),
        Unit::Seconds,
        "How long the window of requests is.",
    );
}

/// The cap on requests of one token at one time.
pub mod request_in_flight {
    use super::{Number, Switch, Unit, number, switch};

    /// Whether it refuses.
    pub static MODE: Switch = switch(
        "request_in_flight.mode",
        true,
        "Whether too many requests of one API token at one time are refused, only counted, or not counted at all.",
    );
    /// Requests of one token.
    pub static TOKEN: Number = number(
        "request_in_flight.token",
        8,
        (0, 1_000),
        Unit::Requests,
        "Requests of one API token at one time, on all replicas together; 0 refuses all.",
    );
}

/// The rate of calls to one broker.
pub mod node_rate {
    use super::{Number, Unit, number};

    /// Calls a second.
    pub static PER_SECOND: Number = number(
        "node_rate.per_second",
        20,
        (1, 10_000),
        Unit::CallsASecond,
        "Calls a second to one broker, of all replicas together; each takes its share, at least one.",
    );
}

/// Every setting, in the order in which it is shown.
pub static ALL: [Setting; 36] = [
    N(&sql_console::PER_USER),
    S(&sql_console::MODE),
    N(&sql_console::TIME_BOUND_SECONDS),
    N(&sql_console::ROWS),
    N(&sql_console::BYTES),
    N(&audit_history::PER_USER),
    S(&audit_history::MODE),
    N(&audit_history::TIME_BOUND_SECONDS),
    N(&audit_history::ROWS),
    N(&audit_history::BYTES),
    N(&audit_export::PER_USER),
    S(&audit_export::MODE),
    N(&audit_export::TIME_BOUND_SECONDS),
    N(&audit_export::ROWS),
    N(&audit_export::BYTES),
    N(&INSTALLATION_CAP),
    S(&login_attempt::MODE),
    N(&login_attempt::FAILURES),
    N(&login_attempt::WITHIN_SECONDS),
    N(&login_attempt::FIRST_WAIT_SECONDS),
    N(&login_attempt::LONGEST_WAIT_SECONDS),
    N(&login_attempt::FORGOTTEN_AFTER_SECONDS),
    N(&login_attempt::NETWORK_FAILURES),
    N(&login_attempt::NETWORK_WITHIN_SECONDS),
    N(&login_attempt::NAME_FAILURES),
    N(&login_attempt::NAME_WITHIN_SECONDS),
    S(&upload_window::MODE),
    N(&upload_window::UPLOADS),
    N(&upload_window::SECONDS),
    S(&api_request_window::MODE),
    N(&api_request_window::TOKEN),
    N(&api_request_window::USER),
    N(&api_request_window::SECONDS),
    S(&request_in_flight::MODE),
    N(&request_in_flight::TOKEN),
    N(&node_rate::PER_SECOND),
];

/// The setting of that name.
pub fn find(name: &str) -> Option<Setting> {
    ALL.iter().find(|setting| setting.name() == name).copied()
}
