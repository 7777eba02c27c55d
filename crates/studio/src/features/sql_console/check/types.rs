//! Types that a cast may name, each written by one spelling.

use sqlparser::ast::{ArrayElemTypeDef, CharacterLength, DataType, ExactNumberInfo, TimezoneInfo};

use super::name;
use super::refusal::Refusal;

/// The type's name as PostgreSQL reads it, or a refusal: the types that look up the catalogue
/// (`regclass` and its kind), `xml` and all that is unknown.
#[expect(clippy::wildcard_enum_match_arm, reason = "whatever is not listed is refused")]
pub(super) fn name(data_type: &DataType) -> Result<String, Refusal> {
    let name = match data_type {
        DataType::Text => "text".to_owned(),
        DataType::Varchar(length)
        | DataType::CharacterVarying(length)
        | DataType::CharVarying(length) => characters("varchar", length.as_ref(), data_type)?,
        DataType::Char(length) | DataType::Character(length) => {
            characters("char", length.as_ref(), data_type)?
        }
        DataType::Bool | DataType::Boolean => "bool".to_owned(),
        DataType::SmallInt(None) | DataType::Int2(None) => "int2".to_owned(),
        DataType::Int(None) | DataType::Integer(None) | DataType::Int4(None) => "int4".to_owned(),
        DataType::BigInt(None) | DataType::Int8(None) => "int8".to_owned(),
        DataType::Real | DataType::Float4 => "float4".to_owned(),
        DataType::DoublePrecision | DataType::Float8 | DataType::Float(ExactNumberInfo::None) => {
            "float8".to_owned()
        }
        DataType::Numeric(digits) | DataType::Decimal(digits) | DataType::Dec(digits) => {
            match digits {
                ExactNumberInfo::None => "numeric".to_owned(),
                ExactNumberInfo::Precision(precision) => format!("numeric({precision})"),
                ExactNumberInfo::PrecisionAndScale(precision, scale) => {
                    format!("numeric({precision}, {scale})")
                }
            }
        }
        DataType::Date => "date".to_owned(),
        DataType::Time(None, TimezoneInfo::None | TimezoneInfo::WithoutTimeZone) => {
            "time".to_owned()
        }
        DataType::Timestamp(None, zone) => match zone {
            TimezoneInfo::None | TimezoneInfo::WithoutTimeZone => "timestamp".to_owned(),
            TimezoneInfo::WithTimeZone | TimezoneInfo::Tz => "timestamptz".to_owned(),
        },
        DataType::Interval { fields: None, precision: None } => "interval".to_owned(),
        DataType::Uuid => "uuid".to_owned(),
        DataType::JSON => "json".to_owned(),
        DataType::JSONB => "jsonb".to_owned(),
        DataType::Bytea => "bytea".to_owned(),
        DataType::Array(ArrayElemTypeDef::SquareBracket(element, None)) => {
            format!("{}[]", name(element)?)
        }
        DataType::Custom(custom, modifiers) if modifiers.is_empty() => {
            match name::fold_all(custom)?.as_slice() {
                [one] if matches!(one.as_str(), "inet" | "cidr") => one.clone(),
                _ => return Err(refused(data_type)),
            }
        }
        _ => return Err(refused(data_type)),
    };
    Ok(name)
}

fn characters(
    name: &str,
    length: Option<&CharacterLength>,
    data_type: &DataType,
) -> Result<String, Refusal> {
    match length {
        None => Ok(name.to_owned()),
        Some(CharacterLength::IntegerLength { length, unit: None }) => {
            Ok(format!("{name}({length})"))
        }
        Some(CharacterLength::IntegerLength { .. } | CharacterLength::Max) => {
            Err(refused(data_type))
        }
    }
}

fn refused(data_type: &DataType) -> Refusal {
    Refusal::construct(format!("Type {}", data_type.to_string().to_lowercase()))
}
