//! The name of the schema, which also enters the keys of locks: two schemas are two sets of limits.

use std::borrow::Cow;

/// Whether a name can stand in SQL without quotes.
pub(crate) fn check(name: &str) -> Result<(), String> {
    let fits = !name.is_empty()
        && name.len() <= 40
        && !name.starts_with(|first: char| first.is_ascii_digit())
        && !name.starts_with("pg_")
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
    if fits {
        return Ok(());
    }
    Err(format!(
        "schema {name:?}: a name of at most 40 lower-case letters, digits and underscores, not beginning with a digit or `pg_`"
    ))
}

/// A statement written for the schema `limits`, in another one.
pub(crate) fn place<'a>(sql: &'a str, schema: &str) -> Cow<'a, str> {
    if schema == "limits" {
        return Cow::Borrowed(sql);
    }
    Cow::Owned(
        sql.replace("limits.", &format!("{schema}."))
            .replace("schema limits", &format!("schema {schema}")),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_would_need_quotes_is_refused() {
        assert!(check("limits_2").is_ok());
        for bad in ["", "Limits", "2limits", "a-b", "a;drop", "pg_limits", &"x".repeat(41)] {
            assert!(check(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn every_mention_of_the_schema_moves() {
        let moved = place("grant usage on schema limits; select limits.claim_v1()", "other");
        assert_eq!(moved, "grant usage on schema other; select other.claim_v1()");
    }
}
