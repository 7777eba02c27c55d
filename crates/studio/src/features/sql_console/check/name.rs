//! Identifiers: folded and bounded as PostgreSQL does, and always written quoted.

use sqlparser::ast::{Ident, ObjectName};

use super::refusal::Refusal;

/// PostgreSQL cuts a longer name, so two names that differ here could be one there.
const NAME_MAX_BYTES: usize = 63;

/// Columns that every table has and no view; PostgreSQL would find none, so the sentence is ours.
const SYSTEM_COLUMNS: [&str; 7] = ["ctid", "xmin", "xmax", "cmin", "cmax", "tableoid", "oid"];

/// The name that PostgreSQL would look up: unquoted ASCII letters fold to lower case.
pub(super) fn fold(ident: &Ident) -> Result<String, Refusal> {
    let name = match ident.quote_style {
        None => ident.value.to_ascii_lowercase(),
        Some('"') => ident.value.clone(),
        Some(quote) => return Err(Refusal::construct(format!("A name in {quote} quotes"))),
    };
    if name.is_empty() || name.len() > NAME_MAX_BYTES {
        return Err(Refusal::because(
            "name",
            format!("A name has between 1 and {NAME_MAX_BYTES} bytes."),
        ));
    }
    Ok(name)
}

/// As [`fold`], for a name that stands for a column.
pub(super) fn fold_column(ident: &Ident) -> Result<String, Refusal> {
    let name = fold(ident)?;
    if SYSTEM_COLUMNS.contains(&name.as_str()) {
        return Err(Refusal::construct(format!("System column {name}")));
    }
    Ok(name)
}

/// All parts of a dotted name, folded.
pub(super) fn fold_all(name: &ObjectName) -> Result<Vec<String>, Refusal> {
    name.0
        .iter()
        .map(|part| {
            part.as_ident().map_or_else(|| Err(Refusal::construct("A computed name")), fold)
        })
        .collect()
}

/// Appends a name in double quotes.
pub(super) fn write(out: &mut String, name: &str) {
    out.push('"');
    for character in name.chars() {
        if character == '"' {
            out.push('"');
        }
        out.push(character);
    }
    out.push('"');
}

/// Appends a string constant that reads the same whatever `standard_conforming_strings` says.
pub(super) fn write_text(out: &mut String, text: &str) {
    out.push_str(if text.contains('\\') { "E'" } else { "'" });
    for character in text.chars() {
        if matches!(character, '\'' | '\\') {
            out.push(character);
        }
        out.push(character);
    }
    out.push('\'');
}
