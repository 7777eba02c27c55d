//! Properties of whatever passes, over generated texts.

use proptest::prelude::*;
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::tokenizer::{Token, Tokenizer};

use crate::features::sql_console::catalogue::Catalogue;
use crate::features::sql_console::check::check;
use crate::features::sql_console::functions;

/// Words and signs of SQL, harmless and not, spelt in many ways.
const PIECES: &[&str] = &[
    "select",
    "SELECT",
    "from",
    "where",
    "group by",
    "having",
    "order by",
    "limit",
    "union",
    "all",
    "with",
    "recursive",
    "as",
    "(",
    ")",
    "(",
    ")",
    ",",
    ",",
    ";",
    ".",
    "*",
    "=",
    "<",
    "+",
    "-",
    "/",
    "||",
    "::",
    "and",
    "or",
    "not",
    "is null",
    "in",
    "between",
    "like",
    "case",
    "when",
    "then",
    "else",
    "end",
    "cast",
    "exists",
    "any",
    "array[",
    "]",
    "distinct",
    "over",
    "partition by",
    "join",
    "left join",
    "on",
    "using",
    "lateral",
    "cross join",
    "values",
    "audit_event",
    "account",
    "Account",
    "\"account\"",
    "console.account",
    "a",
    "b",
    "id",
    "actor",
    "e.id",
    "a.id",
    "1",
    "2",
    "1.5",
    "'x'",
    "'it''s'",
    "E'\\n'",
    "$$d$$",
    "$t$d$t$",
    "count",
    "count(*)",
    "lower",
    "\"lower\"",
    "pg_catalog.lower",
    "coalesce",
    "now()",
    "pg_sleep",
    "PG_SLEEP",
    "\"pg_sleep\"",
    "pg_sleep(1)",
    "pg_catalog.pg_sleep(1)",
    "pg_catalog.",
    "pg_class",
    "pg_catalog.pg_class",
    "pg_authid",
    "studio.session",
    "information_schema.tables",
    "set_config('a', 'b', true)",
    "lo_create(1)",
    "nextval('s')",
    "regclass",
    "::regclass",
    "::text",
    "int",
    "text",
    "-- c\n",
    "/* c */",
    "/* /* */ */",
    "U&\"pg\\005fsleep\"",
    "u&'x'",
    "into",
    "for update",
    "insert into",
    "delete from",
    "update",
    "copy",
    "set",
    "explain",
    "do",
    "ctid",
    "xmin",
    "current_user",
    "tablesample",
    "only",
    "null",
    "true",
    "\n",
    "\t",
    " ",
    "date '2026-01-01'",
    "interval '1 day'",
    "$1",
    "?",
    "@",
    "\\",
];

fn soup() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(PIECES), 0..25)
        .prop_map(|pieces| format!("select {}", pieces.join(" ")))
}

/// Expressions without brackets, so that precedence decides their tree.
fn expression() -> impl Strategy<Value = String> {
    let leaf = prop::sample::select(
        &[
            "1", "2.5", "'a'", "'b%'", "null", "true", "id", "e.actor", "detail", "'1'", "-3",
            "E'\\\\'",
        ][..],
    )
    .prop_map(str::to_owned);
    leaf.prop_recursive(5, 40, 3, |inner| {
        let infix = prop::sample::select(
            &[
                "+", "-", "*", "/", "%", "^", "||", "=", "<>", "!=", "<", ">", "<=", ">=", "and",
                "or", "like", "not like", "ilike", "is distinct from", "is not distinct from", "->",
                "->>", "#>", "@>", "~", "!~*", "&", "|", "#", "<<", "AND", "at time zone",
                "similar to",
            ][..],
        );
        let prefix = prop::sample::select(&["not ", "- ", "+ ", "-", "NOT "][..]);
        let postfix = prop::sample::select(
            &[
                " is null", " is not null", " is true", " is not false", "::text", "::int", " in (1, 2)",
                " not in (select 1)", " between 1 and 2", " not between 1 and 2", " collate \"C\"",
                "::numeric(5, 2)::text", " is unknown",
            ][..],
        );
        prop_oneof![
            4 => (inner.clone(), infix, inner.clone()).prop_map(|(left, operator, right)| format!("{left} {operator} {right}")),
            1 => (prefix, inner.clone()).prop_map(|(operator, right)| format!("{operator}{right}")),
            2 => (inner.clone(), postfix).prop_map(|(left, operator)| format!("{left}{operator}")),
            1 => inner.clone().prop_map(|inner| format!("({inner})")),
            1 => inner.clone().prop_map(|inner| format!("lower({inner})")),
            1 => (inner.clone(), inner.clone(), inner)
                .prop_map(|(a, b, c)| format!("case when {a} then {b} else {c} end")),
        ]
    })
}

/// The rewritten text is its own rewriting: it parses to the tree that was checked.
fn is_its_own_rewriting(sql: &str) -> Result<bool, TestCaseError> {
    let Ok(once) = check(sql, &Catalogue::ALL) else { return Ok(false) };
    match check(once.sql(), &Catalogue::ALL) {
        Ok(twice) => prop_assert_eq!(once.sql(), twice.sql(), "of {}", sql),
        Err(refusal) => {
            return Err(TestCaseError::fail(format!("{}\nof {sql}\nfails: {refusal}", once.sql())));
        }
    }
    Ok(true)
}

/// Every name before a bracket is of the list, or a keyword or a name of the rewriting's own.
fn calls_only_the_list(sql: &str) -> Result<(), TestCaseError> {
    let tokens = Tokenizer::new(&PostgreSqlDialect {}, sql).tokenize().expect("it was written");
    let tokens: Vec<_> =
        tokens.into_iter().filter(|token| !matches!(token, Token::Whitespace(_))).collect();
    for window in tokens.windows(4) {
        if let [Token::Word(schema), Token::Period, Token::Word(name), Token::LParen] = window
            && schema.value == "pg_catalog"
        {
            prop_assert!(functions::find(&name.value).is_some(), "{} in {}", name.value, sql);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, ..ProptestConfig::default() })]

    #[test]
    fn no_soup_of_words_gets_anything_through(sql in soup()) {
        if is_its_own_rewriting(&sql)? {
            let checked = check(&sql, &Catalogue::ALL).expect("it passed before");
            calls_only_the_list(checked.sql())?;
            let text = checked.sql();
            for forbidden in [
                "pg_sleep\"(", "set_config\"(", "lo_create\"(", "nextval\"(", "FROM \"pg_", "JOIN \"pg_",
                "FROM \"session\"", "\"studio\"", "\"information_schema\"", "AS regclass", " INTO ",
                "FOR UPDATE", ";",
            ] {
                prop_assert!(!text.contains(forbidden), "{} in {} of {}", forbidden, text, sql);
            }
        }
    }

    #[test]
    fn no_text_at_all_panics(sql in "\\PC{0,80}", quotes in "[ -~\\n]{0,80}") {
        is_its_own_rewriting(&sql)?;
        is_its_own_rewriting(&format!("select {quotes}"))?;
        is_its_own_rewriting(&format!("select '{quotes}'"))?;
    }

    #[test]
    fn expressions_are_their_own_rewriting(expression in expression()) {
        is_its_own_rewriting(&format!("select {expression} from audit_event e"))?;
    }

    #[test]
    fn texts_keep_their_value(text in "[ -~\\n\u{e9}\u{1f600}]{0,40}") {
        let plain = format!("select '{}'", text.replace('\'', "''"));
        let escaped = format!("select E'{}'", text.replace('\\', "\\\\").replace('\'', "''"));
        let plain = check(&plain, &Catalogue::ALL).expect("a text passes").sql().to_owned();
        let escaped = check(&escaped, &Catalogue::ALL).expect("a text passes").sql().to_owned();
        prop_assert_eq!(&plain, &escaped);
        let name = text.replace('\n', "x");
        if !name.is_empty() && name.len() <= 63 {
            let quoted = format!("select 1 as \"{}\"", name.replace('"', "\"\""));
            let checked = check(&quoted, &Catalogue::ALL);
            if let Ok(checked) = checked {
                prop_assert_eq!(checked.sql(), &quoted.replace("select 1 as", "SELECT 1 AS"));
            }
        }
    }
}
