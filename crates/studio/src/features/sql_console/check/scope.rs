//! What a name in front of a dot can mean.
//!
//! PostgreSQL reads `e.f` as the call `f(e)` when `e` has no column `f`, so the columns of every
//! relation in scope are known here, and a dotted name must be one of them.

use std::collections::BTreeSet;
use std::rc::Rc;

use super::refusal::Refusal;

/// The names of a relation's columns. Unnamed columns are left out.
pub(super) type Columns = Rc<BTreeSet<String>>;

/// A relation in a FROM clause under the name that the query gives it.
#[derive(Debug, Clone)]
pub(super) struct Relation {
    pub(super) name: String,
    pub(super) columns: Columns,
    /// What its heaviest column adds to an expression: see [`Output::weight`].
    pub(super) weight: u64,
}

/// What a query gives to whoever reads from it.
#[derive(Debug, Clone)]
pub(super) struct Output {
    pub(super) columns: Columns,
    /// The most terms that PostgreSQL's planner puts in the place of one of the columns when it
    /// merges the query into the one around it.
    pub(super) weight: u64,
}

/// The relations that an expression can see: those of its own FROM, then those of the queries around.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scope<'s> {
    outer: Option<&'s Scope<'s>>,
    relations: &'s [Relation],
}

impl<'s> Scope<'s> {
    pub(super) const EMPTY: Scope<'static> = Scope { outer: None, relations: &[] };

    pub(super) fn inside(outer: &'s Scope<'s>, relations: &'s [Relation]) -> Self {
        Self { outer: Some(outer), relations }
    }

    fn levels(&self) -> impl Iterator<Item = &Scope<'_>> {
        std::iter::successors(Some(self), |scope| scope.outer)
    }

    /// The innermost relation of that name.
    pub(super) fn relation(&self, name: &str) -> Result<&Relation, Refusal> {
        self.levels()
            .find_map(|scope| scope.relations.iter().find(|relation| relation.name == name))
            .ok_or_else(|| {
                Refusal::because(
                    format!("relation {name}"),
                    format!("No relation named {name} is in scope here."),
                )
            })
    }

    /// Checks `relation.column` and gives its weight.
    pub(super) fn column(&self, relation: &str, column: &str) -> Result<u64, Refusal> {
        let found = self.relation(relation)?;
        if found.columns.contains(column) {
            return Ok(found.weight);
        }
        Err(Refusal::because(
            format!("column {relation}.{column}"),
            format!("{relation} has no column named {column}; name a computed column with AS."),
        ))
    }

    /// Refuses a bare name that no relation has as a column and that is a relation: the whole row.
    pub(super) fn refuse_whole_row(&self, name: &str) -> Result<(), Refusal> {
        let is_column = self
            .levels()
            .flat_map(|scope| scope.relations)
            .any(|relation| relation.columns.contains(name));
        if !is_column && self.relation(name).is_ok() {
            return Err(Refusal::construct(format!("The whole row {name} as a value")));
        }
        Ok(())
    }

    /// The weight of a bare column: of the heaviest relation that it can belong to.
    pub(super) fn heaviest(&self) -> u64 {
        self.levels()
            .flat_map(|scope| scope.relations)
            .map(|relation| relation.weight)
            .max()
            .unwrap_or(1)
    }

    /// Every column of the innermost FROM, for `*`.
    pub(super) fn own_columns(&self) -> impl Iterator<Item = &String> {
        self.relations.iter().flat_map(|relation| relation.columns.iter())
    }
}

/// The common table expressions that a query can see, the nearest first.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ctes<'s> {
    pub(super) outer: Option<&'s Ctes<'s>>,
    pub(super) own: &'s [Relation],
}

impl Ctes<'_> {
    pub(super) const NONE: Ctes<'static> = Ctes { outer: None, own: &[] };

    pub(super) fn find(&self, name: &str) -> Option<&Relation> {
        self.own
            .iter()
            .find(|cte| cte.name == name)
            .or_else(|| self.outer.and_then(|outer| outer.find(name)))
    }
}
