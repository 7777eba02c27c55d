//! Checks a text and writes it again.
//!
//! [`check`] reads the text into a syntax tree and writes a new text while it walks the tree. Only
//! what the walk knows is written, so a construct that nobody thought of cannot reach the server:
//! it has no way into the new text. The new text is fully bracketed, every name in it is quoted,
//! every function and view carries its schema, and nothing of the author's spelling is left.

mod expression;
mod expression_shape;
mod from;
mod function;
mod literal;
mod name;
mod operator;
mod order_by;
mod precedence;
mod query;
mod refusal;
mod scope;
mod select;
mod shape;
#[cfg(test)]
mod tests;
mod types;

use std::collections::BTreeSet;

use sqlparser::ast::Statement;
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::TokenWithSpan;

pub use self::refusal::Refusal;
pub use self::shape::TEXT_MAX_BYTES;
use super::catalogue::{Catalogue, View};
use scope::{Ctes, Scope};

/// How often the parser may call itself; the bounds of `shape` are reached long before.
const PARSER_RECURSION: usize = 400;

/// A text that was checked: safe to prepare under the console's role.
#[derive(Debug, Clone)]
pub struct CheckedQuery {
    sql: String,
    views: Vec<&'static View>,
}

impl CheckedQuery {
    /// The statement written from the checked tree, never the author's text.
    pub fn sql(&self) -> &str {
        &self.sql
    }

    /// The views that the statement reads, each once, in the order of their names.
    pub fn views(&self) -> &[&'static View] {
        &self.views
    }
}

/// The stack of the thread that checks. The bounds of `shape` keep the depth far below it; the
/// caller's own stack may be small. Only pages that are touched take memory.
const STACK_BYTES: usize = 32 << 20;

/// Reads one SELECT and writes it again from its checked tree, on a thread of its own.
///
/// Blocks for milliseconds, so an asynchronous caller hands it to a blocking thread. Neither the
/// depth of the text nor its size can overflow a stack.
///
/// # Errors
///
/// A [`Refusal`] names the first construct that the console does not run.
pub fn check(sql: &str, catalogue: &Catalogue) -> Result<CheckedQuery, Refusal> {
    let tokens = shape::tokens(sql)?;
    std::thread::scope(|scope| {
        std::thread::Builder::new()
            .stack_size(STACK_BYTES)
            .spawn_scoped(scope, || parse_and_write(tokens, catalogue))
            .map_err(|_| unfinished())?
            .join()
            .map_err(|_| unfinished())?
    })
}

fn unfinished() -> Refusal {
    Refusal::because("check", "The text could not be checked; nothing was run.")
}

fn parse_and_write(
    tokens: Vec<TokenWithSpan>,
    catalogue: &Catalogue,
) -> Result<CheckedQuery, Refusal> {
    let mut statements = Parser::new(&PostgreSqlDialect {})
        .with_recursion_limit(PARSER_RECURSION)
        .with_tokens_with_locations(tokens)
        .parse_statements()
        .map_err(unparsed)?;
    let statement = statements.pop();
    let (Some(statement), true) = (statement, statements.is_empty()) else {
        return Err(Refusal::construct("More than one statement"));
    };
    let Statement::Query(query) = statement else {
        return Err(Refusal::construct("A statement other than SELECT"));
    };
    let mut writer = Writer { catalogue, sql: String::new(), views: BTreeSet::new(), weight: 0 };
    writer.query(&query, &Scope::EMPTY, &Ctes::NONE)?;
    let views = writer.views.into_iter().filter_map(|name| catalogue.view(name)).collect();
    Ok(CheckedQuery { sql: writer.sql, views })
}

fn unparsed(error: ParserError) -> Refusal {
    match error {
        ParserError::TokenizerError(reason) | ParserError::ParserError(reason) => {
            Refusal::because("syntax", format!("The text does not parse: {reason}."))
        }
        ParserError::RecursionLimitExceeded => {
            Refusal::because("nesting", "The text nests too deeply.")
        }
    }
}

/// Writes the new text while it walks the tree of the old one.
struct Writer<'c> {
    catalogue: &'c Catalogue,
    sql: String,
    /// Names of the views read so far.
    views: BTreeSet<&'static str>,
    /// Terms that the planner may have to hold, so far.
    weight: u64,
}

/// The most terms of a statement after its subqueries were put in the places of their columns.
/// `select x || x as x from (select x || x as x from (…))` doubles them at every level, and the
/// planner would take all memory before any time bound stops it.
const WEIGHT_MAX: u64 = 100_000;

impl Writer<'_> {
    fn push(&mut self, text: &str) {
        self.sql.push_str(text);
    }

    fn push_name(&mut self, name: &str) {
        name::write(&mut self.sql, name);
    }

    /// Counts terms.
    fn weigh(&mut self, terms: u64) -> Result<(), Refusal> {
        self.weight = self.weight.saturating_add(terms);
        if self.weight <= WEIGHT_MAX {
            return Ok(());
        }
        Err(Refusal::because(
            "nesting",
            "Subqueries that repeat their columns multiply too often; write WITH … AS MATERIALIZED for \
             what is used many times.",
        ))
    }

    /// Writes each item, with commas between.
    fn list<T>(
        &mut self,
        items: &[T],
        mut write: impl FnMut(&mut Self, &T) -> Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        for (index, item) in items.iter().enumerate() {
            if index > 0 {
                self.push(", ");
            }
            write(self, item)?;
        }
        Ok(())
    }
}

/// Refuses a clause that is there.
fn refuse_if(present: bool, construct: &str) -> Result<(), Refusal> {
    if present { Err(Refusal::construct(construct)) } else { Ok(()) }
}
