//! What a reader of the trail asks for.

use std::sync::LazyLock;

use tokio_postgres::types::Type;

use crate::platform::account::AccountName;
use crate::platform::audit::Outcome;
use crate::platform::paging::{Microseconds, Scope};
use crate::platform::problem::Problem;
use crate::platform::timestamp;

/// The longest filter value, in bytes.
const VALUE_BYTES: usize = 512;

/// The parameters as they come.
#[derive(Debug, Default)]
pub(super) struct FilterParameters {
    pub(super) from: Option<String>,
    pub(super) to: Option<String>,
    pub(super) actor: Option<String>,
    pub(super) action: Option<String>,
    pub(super) outcome: Option<String>,
}

/// A filter that makes sense.
#[derive(Debug, Clone)]
pub(super) struct Filter {
    /// The first time.
    pub(super) from: Microseconds,
    /// The first time that is no longer asked for.
    pub(super) to: Microseconds,
    pub(super) actor: Option<String>,
    pub(super) action: Option<String>,
    pub(super) outcome: Option<String>,
}

impl Filter {
    pub(super) fn parse(parameters: FilterParameters) -> Result<Self, Problem> {
        let FilterParameters { from, to, actor, action, outcome } = parameters;
        for value in [&actor, &action].into_iter().flatten() {
            if value.is_empty() || value.len() > VALUE_BYTES || value.contains('\0') {
                return Err(Problem::bad_parameter("A filter's value has 1 to 512 bytes."));
            }
        }
        if outcome.as_deref().is_some_and(|outcome| !Outcome::NAMES.contains(&outcome)) {
            return Err(Problem::bad_parameter(&format!(
                "`outcome` is one of {}.",
                Outcome::NAMES.join(", ")
            )));
        }
        Ok(Self {
            from: time("from", from.as_deref())?.unwrap_or(Microseconds::FIRST),
            to: time("to", to.as_deref())?.unwrap_or(Microseconds::LAST),
            // As accounts are looked up; a name that cannot be an account's finds what is stored under it, if anything.
            actor: actor.map(|actor| {
                AccountName::parse(&actor).map_or(actor, |name| name.as_str().to_owned())
            }),
            action,
            outcome,
        })
    }

    /// What cursors of this filter are bound to.
    pub(super) fn scope(&self) -> Scope {
        let filter = (self.from.0, self.to.0, &self.actor, &self.action, &self.outcome);
        Scope::new("audit, newest first", &serde_json::to_vec(&filter).unwrap_or_default())
    }

    /// The values of `$6`, `$7` and `$8`, empty where the filter does not name the column.
    pub(super) fn values(&self) -> [&str; 3] {
        [&self.actor, &self.action, &self.outcome].map(|value| value.as_deref().unwrap_or(""))
    }

    fn number(&self) -> usize {
        usize::from(self.actor.is_some())
            + 2 * usize::from(self.action.is_some())
            + 4 * usize::from(self.outcome.is_some())
    }
}

fn time(name: &str, text: Option<&str>) -> Result<Option<Microseconds>, Problem> {
    text.map(|text| {
        timestamp::parse(text)
            .map(Microseconds)
            .ok_or_else(|| Problem::bad_parameter(&format!("`{name}` is an RFC 3339 time.")))
    })
    .transpose()
}

/// One statement for each set of columns that a filter may name. A single one with `$6 is null or ..` would get one
/// plan for all of them, which is the wrong one for most.
#[derive(Debug)]
pub(super) struct Statements([String; 8]);

impl Statements {
    fn new(template: &str) -> Self {
        Self(std::array::from_fn(|number| {
            let mut filter = String::new();
            for (bit, condition) in
                [(1, " and actor = $6"), (2, " and action = $7"), (4, " and outcome = $8")]
            {
                if number & bit != 0 {
                    filter.push_str(condition);
                }
            }
            template.replace("{filter}", &filter)
        }))
    }

    /// The statement for this filter.
    pub(super) fn of(&self, filter: &Filter) -> &str {
        self.0.get(filter.number()).map_or("", String::as_str)
    }
}

/// A plan for the very values, and one that follows an index in its order: a generic plan knows neither how few rows
/// are wanted nor how rare a value is, and sorting reads everything that a filter leaves.
pub(super) const PLAN: &str = "set local plan_cache_mode = force_custom_plan; set local jit = off; \
     set local enable_seqscan = off; set local enable_bitmapscan = off; set local enable_sort = off;";

/// One page.
pub(super) static PAGE: LazyLock<Statements> =
    LazyLock::new(|| Statements::new(include_str!("queries/page.sql")));
/// A count.
pub(super) static COUNT: LazyLock<Statements> =
    LazyLock::new(|| Statements::new(include_str!("queries/count.sql")));
/// A piece of an export.
pub(super) static CHUNK: LazyLock<Statements> =
    LazyLock::new(|| Statements::new(include_str!("queries/chunk.sql")));

/// The types of the parameters: a statement need not use all of them, and then the server could not tell.
pub(super) const PAGE_TYPES: [Type; 8] = [
    Type::TIMESTAMPTZ,
    Type::INT8,
    Type::TIMESTAMPTZ,
    Type::INT8,
    Type::INT8,
    Type::TEXT,
    Type::TEXT,
    Type::TEXT,
];
/// The same for a count; two are not used.
pub(super) const COUNT_TYPES: [Type; 8] = [
    Type::TIMESTAMPTZ,
    Type::TIMESTAMPTZ,
    Type::INT8,
    Type::INT8,
    Type::INT8,
    Type::TEXT,
    Type::TEXT,
    Type::TEXT,
];
/// The same for a piece of an export.
pub(super) const CHUNK_TYPES: [Type; 9] = [
    Type::TIMESTAMPTZ,
    Type::INT8,
    Type::TIMESTAMPTZ,
    Type::TEXT,
    Type::INT8,
    Type::TEXT,
    Type::TEXT,
    Type::TEXT,
    Type::TEXT,
];
