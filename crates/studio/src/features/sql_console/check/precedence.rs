//! Whether PostgreSQL would have read the same tree.
//!
//! The parser's table of precedence is not PostgreSQL's everywhere: it reads `- 1 ^ 2` as
//! `- (1 ^ 2)` and `a ~ b || c` as `a ~ (b || c)`. Where the two differ the author is asked for
//! brackets; a query is never run with a meaning that PostgreSQL would not have given it.

use sqlparser::ast::{BinaryOperator, CastKind, Expr, UnaryOperator};

use super::refusal::Refusal;

/// PostgreSQL's table, weakest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Strength {
    Or,
    And,
    Not,
    Is,
    Comparison,
    /// BETWEEN, IN, LIKE and their kin.
    Range,
    /// Every operator that has no line of its own.
    Other,
    Sum,
    Product,
    Power,
    AtTimeZone,
    Collate,
    Sign,
    Subscript,
    Cast,
    /// A constant, a name, a call, or anything in brackets.
    Whole,
}

impl Strength {
    /// Whether `a op b op c` is an error.
    fn is_alone(self) -> bool {
        matches!(self, Self::Is | Self::Comparison | Self::Range)
    }
}

/// Refuses an expression whose operands PostgreSQL would have cut otherwise.
#[expect(clippy::wildcard_enum_match_arm, reason = "all others enclose their operands")]
pub(super) fn agrees(expr: &Expr) -> Result<(), Refusal> {
    let own = strength(expr);
    let agreed = match expr {
        Expr::BinaryOp { left, right, .. }
        | Expr::IsDistinctFrom(left, right)
        | Expr::IsNotDistinctFrom(left, right)
        | Expr::AtTimeZone { timestamp: left, time_zone: right } => {
            is_left_of(left, own) && is_right_of(right, own)
        }
        Expr::Like { expr, pattern, escape_char, .. }
        | Expr::ILike { expr, pattern, escape_char, .. }
        | Expr::SimilarTo { expr, pattern, escape_char, .. } => {
            is_left_of(expr, own)
                && is_right_of(pattern, own)
                && escape_char.as_ref().is_none_or(|escape| is_right_of(escape, own))
        }
        Expr::Between { expr, low, high, .. } => {
            is_left_of(expr, own)
                && strength(low) >= Strength::Other
                && is_right_of(high, Strength::Range)
        }
        Expr::In { expr, .. } => is_left_of(expr, own),
        Expr::AnyOp { left, .. } | Expr::AllOp { left, .. } => is_left_of(left, own),
        Expr::IsNull(operand)
        | Expr::IsNotNull(operand)
        | Expr::IsTrue(operand)
        | Expr::IsNotTrue(operand)
        | Expr::IsFalse(operand)
        | Expr::IsNotFalse(operand)
        | Expr::IsUnknown(operand)
        | Expr::IsNotUnknown(operand) => is_left_of(operand, own),
        Expr::UnaryOp { expr: operand, .. } | Expr::Collate { expr: operand, .. } => {
            strength(operand) >= own
        }
        Expr::Cast { kind: CastKind::DoubleColon, expr: operand, .. } => strength(operand) >= own,
        Expr::CompoundFieldAccess { root, .. } => strength(root) == Strength::Whole,
        _ => true,
    };
    if agreed {
        return Ok(());
    }
    Err(Refusal::because(
        "operators without brackets",
        "Operators of different strength stand side by side, and it is not plain which goes first: \
         put brackets around one of them.",
    ))
}

fn is_left_of(operand: &Expr, own: Strength) -> bool {
    let operand = strength(operand);
    operand > own || (operand == own && !own.is_alone())
}

/// What begins with an operator of its own cannot be cut on its left.
fn is_right_of(operand: &Expr, own: Strength) -> bool {
    matches!(operand, Expr::UnaryOp { .. } | Expr::Exists { negated: true, .. })
        || strength(operand) > own
}

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "all others are whole, or are refused elsewhere"
)]
fn strength(expr: &Expr) -> Strength {
    match expr {
        Expr::BinaryOp { op, .. } => operator_strength(op),
        Expr::AnyOp { compare_op, .. } | Expr::AllOp { compare_op, .. } => {
            operator_strength(compare_op)
        }
        Expr::UnaryOp { op: UnaryOperator::Not, .. } | Expr::Exists { negated: true, .. } => {
            Strength::Not
        }
        Expr::UnaryOp { .. } => Strength::Sign,
        Expr::IsNull(_)
        | Expr::IsNotNull(_)
        | Expr::IsTrue(_)
        | Expr::IsNotTrue(_)
        | Expr::IsFalse(_)
        | Expr::IsNotFalse(_)
        | Expr::IsUnknown(_)
        | Expr::IsNotUnknown(_)
        | Expr::IsDistinctFrom(..)
        | Expr::IsNotDistinctFrom(..) => Strength::Is,
        Expr::Between { .. }
        | Expr::In { .. }
        | Expr::Like { .. }
        | Expr::ILike { .. }
        | Expr::SimilarTo { .. } => Strength::Range,
        Expr::AtTimeZone { .. } => Strength::AtTimeZone,
        Expr::Collate { .. } => Strength::Collate,
        Expr::Cast { kind: CastKind::DoubleColon, .. } => Strength::Cast,
        Expr::CompoundFieldAccess { .. } => Strength::Subscript,
        _ => Strength::Whole,
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "PostgreSQL's own line for all others")]
fn operator_strength(operator: &BinaryOperator) -> Strength {
    match operator {
        BinaryOperator::Or => Strength::Or,
        BinaryOperator::And => Strength::And,
        BinaryOperator::Eq
        | BinaryOperator::NotEq
        | BinaryOperator::Lt
        | BinaryOperator::Gt
        | BinaryOperator::LtEq
        | BinaryOperator::GtEq => Strength::Comparison,
        BinaryOperator::Plus | BinaryOperator::Minus => Strength::Sum,
        BinaryOperator::Multiply | BinaryOperator::Divide | BinaryOperator::Modulo => {
            Strength::Product
        }
        BinaryOperator::PGExp => Strength::Power,
        _ => Strength::Other,
    }
}
