//! What a setting is: its name, what it may be, and what it means.

use serde::{Deserialize, Serialize};

/// What a limit does when it is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Refuses.
    Enforce,
    /// Lets through, and counts, shows and logs what it would have refused.
    Shadow,
    /// Does not count.
    Off,
}

impl Mode {
    /// The word for it in JSON and in the table.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Enforce => "enforce",
            Self::Shadow => "shadow",
            Self::Off => "off",
        }
    }

    /// The mode of that name.
    pub fn parse(name: &str) -> Option<Self> {
        [Self::Enforce, Self::Shadow, Self::Off].into_iter().find(|mode| mode.name() == name)
    }
}

/// What a number counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    /// Requests at one time or in a window.
    Requests,
    /// Failed sign-ins.
    Failures,
    /// Plugin uploads.
    Uploads,
    /// Rows of one answer.
    Rows,
    /// Bytes of one answer.
    Bytes,
    /// Seconds.
    Seconds,
    /// Calls a second.
    #[serde(rename = "calls a second")]
    CallsASecond,
}

/// Where the value in force is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    /// In Studio's table.
    Here,
    /// In the limits' database, where a claim reads it: the cap of that limit.
    CapOf(&'static str),
    /// The same: the shadow mode of that limit.
    ShadowOf(&'static str),
}

/// A setting that is a whole number.
#[derive(Debug, Clone, Copy)]
pub struct Number {
    /// The name in the API and in the table.
    pub name: &'static str,
    /// What holds until somebody changes it, unless the file says otherwise.
    pub default: u64,
    /// The least.
    pub minimum: u64,
    /// The most.
    pub maximum: u64,
    /// What it counts.
    pub unit: Unit,
    /// One sentence.
    pub meaning: &'static str,
    /// Where it is kept.
    pub kept: Kept,
}

/// A setting that is a [`Mode`]; `enforce` until somebody changes it.
#[derive(Debug, Clone, Copy)]
pub struct Switch {
    /// The name in the API and in the table.
    pub name: &'static str,
    /// Whether it may be `off`.
    pub may_be_off: bool,
    /// One sentence.
    pub meaning: &'static str,
    /// Where it is kept.
    pub kept: Kept,
}

impl Switch {
    /// The modes it may take.
    pub const fn choices(&self) -> &'static [Mode] {
        if self.may_be_off {
            &[Mode::Enforce, Mode::Shadow, Mode::Off]
        } else {
            &[Mode::Enforce, Mode::Shadow]
        }
    }
}

/// A setting of either kind.
#[derive(Debug, Clone, Copy)]
pub enum Setting {
    /// A whole number.
    Number(&'static Number),
    /// A mode.
    Switch(&'static Switch),
}

impl Setting {
    /// The name in the API and in the table.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Number(number) => number.name,
            Self::Switch(switch) => switch.name,
        }
    }

    /// One sentence.
    pub const fn meaning(&self) -> &'static str {
        match self {
            Self::Number(number) => number.meaning,
            Self::Switch(switch) => switch.meaning,
        }
    }

    /// Where it is kept.
    pub const fn kept(&self) -> Kept {
        match self {
            Self::Number(number) => number.kept,
            Self::Switch(switch) => switch.kept,
        }
    }
}

/// What a setting is set to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(untagged)]
pub enum Value {
    /// Of a number.
    Number(u64),
    /// Of a switch.
    Mode(Mode),
}

impl Value {
    /// As the table keeps it.
    pub fn to_text(self) -> String {
        match self {
            Self::Number(number) => number.to_string(),
            Self::Mode(mode) => mode.name().to_owned(),
        }
    }
}
