//! The operators that pass, each as it is written.

use sqlparser::ast::BinaryOperator;

use super::refusal::Refusal;

#[expect(clippy::wildcard_enum_match_arm, reason = "whatever is not listed is refused")]
pub(super) fn spelled(operator: &BinaryOperator) -> Result<&'static str, Refusal> {
    Ok(match operator {
        BinaryOperator::Plus => " + ",
        BinaryOperator::Minus => " - ",
        BinaryOperator::Multiply => " * ",
        BinaryOperator::Divide => " / ",
        BinaryOperator::Modulo => " % ",
        BinaryOperator::PGExp => " ^ ",
        BinaryOperator::StringConcat => " || ",
        BinaryOperator::Gt => " > ",
        BinaryOperator::Lt => " < ",
        BinaryOperator::GtEq => " >= ",
        BinaryOperator::LtEq => " <= ",
        BinaryOperator::Eq => " = ",
        BinaryOperator::NotEq => " <> ",
        BinaryOperator::And => " AND ",
        BinaryOperator::Or => " OR ",
        BinaryOperator::BitwiseOr => " | ",
        BinaryOperator::BitwiseAnd => " & ",
        BinaryOperator::PGBitwiseXor => " # ",
        BinaryOperator::PGBitwiseShiftLeft => " << ",
        BinaryOperator::PGBitwiseShiftRight => " >> ",
        BinaryOperator::PGOverlap => " && ",
        BinaryOperator::PGRegexMatch => " ~ ",
        BinaryOperator::PGRegexIMatch => " ~* ",
        BinaryOperator::PGRegexNotMatch => " !~ ",
        BinaryOperator::PGRegexNotIMatch => " !~* ",
        BinaryOperator::PGStartsWith => " ^@ ",
        BinaryOperator::Arrow => " -> ",
        BinaryOperator::LongArrow => " ->> ",
        BinaryOperator::HashArrow => " #> ",
        BinaryOperator::HashLongArrow => " #>> ",
        BinaryOperator::AtArrow => " @> ",
        BinaryOperator::ArrowAt => " <@ ",
        BinaryOperator::Question => " ? ",
        BinaryOperator::QuestionAnd => " ?& ",
        BinaryOperator::QuestionPipe => " ?| ",
        other => return Err(Refusal::construct(format!("Operator {other}"))),
    })
}
