//! Constants.

use sqlparser::ast::Value;

use super::name;
use super::refusal::Refusal;

/// Writes a constant: numbers as they stand, texts by their value and not by their spelling.
#[expect(clippy::wildcard_enum_match_arm, reason = "whatever is not listed is refused")]
pub(super) fn write(out: &mut String, value: &Value) -> Result<(), Refusal> {
    match value {
        Value::Number(digits, false) if is_decimal(digits) => out.push_str(digits),
        Value::SingleQuotedString(text) | Value::EscapedStringLiteral(text) => {
            write_text(out, text)?;
        }
        Value::DollarQuotedString(text) => write_text(out, &text.value)?,
        Value::Boolean(true) => out.push_str("TRUE"),
        Value::Boolean(false) => out.push_str("FALSE"),
        Value::Null => out.push_str("NULL"),
        Value::Placeholder(name) => {
            return Err(Refusal::construct(format!("Parameter {name}")));
        }
        Value::Number(..) => return Err(Refusal::construct("This form of number")),
        _ => return Err(Refusal::construct("This form of constant")),
    }
    Ok(())
}

fn write_text(out: &mut String, text: &str) -> Result<(), Refusal> {
    if text.contains('\0') {
        return Err(Refusal::construct("A NUL character"));
    }
    name::write_text(out, text);
    Ok(())
}

/// Digits with at most one point and an exponent, as every version of PostgreSQL reads them.
fn is_decimal(text: &str) -> bool {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (text, None),
    };
    let digits = mantissa.replacen('.', "", 1);
    let all_digits =
        |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    all_digits(&digits)
        && exponent.is_none_or(|text| all_digits(text.strip_prefix(['+', '-']).unwrap_or(text)))
}
