//! Expressions. Each compound one is written in brackets of its own, so that what the server reads
//! is the tree that was checked, whatever either side thinks of precedence.

use sqlparser::ast::{CastKind, Expr, Ident, InTarget, Interval, TypedString, UnaryOperator};

use super::refusal::Refusal;
use super::scope::{Ctes, Scope};
use super::{Writer, literal, name, operator, precedence, refuse_if, types};
use crate::features::sql_console::catalogue::SCHEMA;

/// What an expression can see.
#[derive(Debug, Clone, Copy)]
pub(super) struct Env<'s> {
    pub(super) scope: &'s Scope<'s>,
    pub(super) ctes: &'s Ctes<'s>,
}

impl Writer<'_> {
    pub(super) fn expressions(&mut self, list: &[Expr], env: Env<'_>) -> Result<(), Refusal> {
        self.list(list, |writer, expr| writer.expression(expr, env))
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "whatever is not listed is refused")]
    pub(super) fn expression(&mut self, expr: &Expr, env: Env<'_>) -> Result<(), Refusal> {
        self.weigh(1)?;
        precedence::agrees(expr)?;
        match expr {
            Expr::Nested(inner) => self.expression(inner, env),
            Expr::Identifier(ident) => {
                let column = name::fold_column(ident)?;
                env.scope.refuse_whole_row(&column)?;
                self.weigh(env.scope.heaviest())?;
                self.push_name(&column);
                Ok(())
            }
            Expr::CompoundIdentifier(parts) => self.dotted(parts, env),
            Expr::Value(value) => literal::write(&mut self.sql, &value.value),
            Expr::TypedString(TypedString { data_type, value, uses_odbc_syntax }) => {
                refuse_if(*uses_odbc_syntax, "An ODBC literal")?;
                self.push("CAST(");
                literal::write(&mut self.sql, &value.value)?;
                self.push_cast_end(&types::name(data_type)?);
                Ok(())
            }
            Expr::Interval(interval) => self.interval(interval, env),
            Expr::Cast { kind, expr, data_type, format } => {
                refuse_if(
                    !matches!(kind, CastKind::Cast | CastKind::DoubleColon),
                    "TRY_CAST or SAFE_CAST",
                )?;
                refuse_if(format.is_some(), "CAST … FORMAT")?;
                let type_name = types::name(data_type)?;
                self.push("CAST(");
                self.expression(expr, env)?;
                self.push_cast_end(&type_name);
                Ok(())
            }
            Expr::UnaryOp { op, expr } => {
                self.push(match op {
                    UnaryOperator::Plus => "(+ ",
                    UnaryOperator::Minus => "(- ",
                    UnaryOperator::Not => "(NOT ",
                    op => return Err(Refusal::construct(format!("Operator {op}"))),
                });
                self.expression(expr, env)?;
                self.push(")");
                Ok(())
            }
            Expr::BinaryOp { left, op, right } => {
                self.infix(left, operator::spelled(op)?, right, env)
            }
            Expr::AnyOp { left, compare_op, right, is_some: _ } => {
                self.quantified(left, compare_op, "ANY", right, env)
            }
            Expr::AllOp { left, compare_op, right } => {
                self.quantified(left, compare_op, "ALL", right, env)
            }
            Expr::IsNull(expr) => self.postfix(expr, " IS NULL)", env),
            Expr::IsNotNull(expr) => self.postfix(expr, " IS NOT NULL)", env),
            Expr::IsTrue(expr) => self.postfix(expr, " IS TRUE)", env),
            Expr::IsNotTrue(expr) => self.postfix(expr, " IS NOT TRUE)", env),
            Expr::IsFalse(expr) => self.postfix(expr, " IS FALSE)", env),
            Expr::IsNotFalse(expr) => self.postfix(expr, " IS NOT FALSE)", env),
            Expr::IsUnknown(expr) => self.postfix(expr, " IS UNKNOWN)", env),
            Expr::IsNotUnknown(expr) => self.postfix(expr, " IS NOT UNKNOWN)", env),
            Expr::IsDistinctFrom(left, right) => self.infix(left, " IS DISTINCT FROM ", right, env),
            Expr::IsNotDistinctFrom(left, right) => {
                self.infix(left, " IS NOT DISTINCT FROM ", right, env)
            }
            Expr::AtTimeZone { timestamp, time_zone } => {
                self.infix(timestamp, " AT TIME ZONE ", time_zone, env)
            }
            Expr::Like { negated, any, expr, pattern, escape_char } => {
                refuse_if(*any, "LIKE ANY")?;
                let word = if *negated { " NOT LIKE " } else { " LIKE " };
                self.pattern(expr, word, pattern, escape_char.as_deref(), env)
            }
            Expr::ILike { negated, any, expr, pattern, escape_char } => {
                refuse_if(*any, "ILIKE ANY")?;
                let word = if *negated { " NOT ILIKE " } else { " ILIKE " };
                self.pattern(expr, word, pattern, escape_char.as_deref(), env)
            }
            Expr::SimilarTo { negated, expr, pattern, escape_char } => {
                let word = if *negated { " NOT SIMILAR TO " } else { " SIMILAR TO " };
                self.pattern(expr, word, pattern, escape_char.as_deref(), env)
            }
            Expr::Between { expr, negated, low, high } => {
                self.push("(");
                self.expression(expr, env)?;
                self.push(if *negated { " NOT BETWEEN " } else { " BETWEEN " });
                self.expression(low, env)?;
                self.push(" AND ");
                self.expression(high, env)?;
                self.push(")");
                Ok(())
            }
            Expr::In { expr, target, negated, global } => {
                refuse_if(*global, "GLOBAL IN")?;
                self.push("(");
                self.expression(expr, env)?;
                self.push(if *negated { " NOT IN (" } else { " IN (" });
                match target {
                    InTarget::List(list) if !list.is_empty() => self.expressions(list, env)?,
                    InTarget::Subquery(query) => {
                        self.query(query, env.scope, env.ctes)?;
                    }
                    _ => return Err(Refusal::construct("IN without a list or a query")),
                }
                self.push("))");
                Ok(())
            }
            Expr::Exists { subquery, negated } => {
                self.push(if *negated { "(NOT EXISTS (" } else { "EXISTS (" });
                self.query(subquery, env.scope, env.ctes)?;
                self.push(if *negated { "))" } else { ")" });
                Ok(())
            }
            Expr::Subquery(query) => self.bracketed_query(query, env),
            Expr::Case { case_token: _, end_token: _, operand, conditions, else_result } => {
                self.case(operand.as_deref(), conditions, else_result.as_deref(), env)
            }
            Expr::Tuple(items) if items.len() > 1 => {
                self.push("(");
                self.expressions(items, env)?;
                self.push(")");
                Ok(())
            }
            Expr::Array(array) => {
                refuse_if(!array.named, "[…] without ARRAY")?;
                self.array(array, env)
            }
            Expr::CompoundFieldAccess { root, access_chain } => {
                self.subscripts(root, access_chain, env)
            }
            Expr::Collate { expr, collation } => {
                let parts = name::fold_all(collation)?;
                let ([collation] | [_, collation]) = parts.as_slice() else {
                    return Err(Refusal::construct("This collation"));
                };
                refuse_if(
                    parts.len() == 2 && parts.first().is_some_and(|s| s != "pg_catalog"),
                    "This collation",
                )?;
                refuse_if(!matches!(collation.as_str(), "C" | "POSIX"), "This collation")?;
                self.push("(");
                self.expression(expr, env)?;
                self.push(" COLLATE \"pg_catalog\".");
                self.push_name(collation);
                self.push(")");
                Ok(())
            }
            Expr::Function(call) => self.function(call, env),
            expr => self.call_syntax(expr, env),
        }
    }

    fn push_cast_end(&mut self, type_name: &str) {
        self.push(" AS ");
        self.push(type_name);
        self.push(")");
    }

    /// `relation.column`, also with the views' schema in front.
    fn dotted(&mut self, parts: &[Ident], env: Env<'_>) -> Result<(), Refusal> {
        let folded = parts.iter().map(name::fold).collect::<Result<Vec<_>, _>>()?;
        let (relation, column) = match folded.as_slice() {
            [relation, column] => (relation, column),
            [schema, relation, column] if schema == SCHEMA => (relation, column),
            _ => return Err(Refusal::construct(format!("The name {}", folded.join(".")))),
        };
        if let Some(last) = parts.last() {
            name::fold_column(last)?;
        }
        self.weigh(env.scope.column(relation, column)?)?;
        self.push_name(relation);
        self.push(".");
        self.push_name(column);
        Ok(())
    }

    fn interval(&mut self, interval: &Interval, env: Env<'_>) -> Result<(), Refusal> {
        let Interval {
            value,
            leading_field,
            leading_precision,
            last_field,
            fractional_seconds_precision,
        } = interval;
        let plain = leading_field.is_none()
            && leading_precision.is_none()
            && last_field.is_none()
            && fractional_seconds_precision.is_none()
            && matches!(value.as_ref(), Expr::Value(_));
        refuse_if(!plain, "An INTERVAL with its unit outside the quotes")?;
        self.push("CAST(");
        self.expression(value, env)?;
        self.push_cast_end("interval");
        Ok(())
    }
}
