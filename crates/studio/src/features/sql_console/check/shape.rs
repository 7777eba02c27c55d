//! Bounds that are held before the parser runs: the text's size and how deep its tree can get.
//!
//! A syntax tree is as deep as its nesting plus its longest chain of operators (`1+1+1+…` leans
//! wholly to the left), and reading, checking and dropping it each recurse. Both are counted over
//! the tokens, in one pass and without recursion, so a hostile text never becomes a tree.

use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer, Word};

use super::refusal::Refusal;

/// The longest text that the console reads, in bytes.
pub const TEXT_MAX_BYTES: usize = 64 << 10;

/// The deepest nesting of brackets.
const NESTING_MAX: usize = 40;

/// The most operators and keywords on any way from the tree's root to a leaf.
const CHAIN_MAX: usize = 400;

/// Splits a text into tokens and refuses what could become too large or too deep a tree.
pub(super) fn tokens(sql: &str) -> Result<Vec<TokenWithSpan>, Refusal> {
    if sql.len() > TEXT_MAX_BYTES {
        return Err(Refusal::because(
            "query text",
            format!(
                "The text has {} bytes; the console reads at most {TEXT_MAX_BYTES}.",
                sql.len()
            ),
        ));
    }
    if sql.contains('\0') {
        return Err(Refusal::construct("A NUL character"));
    }
    let tokens =
        Tokenizer::new(&PostgreSqlDialect {}, sql).tokenize_with_location().map_err(|error| {
            Refusal::because("syntax", format!("The text does not parse: {error}."))
        })?;
    refuse_unicode_escapes(&tokens)?;
    refuse_depth(&tokens)?;
    refuse_other_statements(&tokens)?;
    Ok(tokens)
}

/// Refuses `U&'…'` and `U&"…"`: the parser would read the second as `u & "…"`, PostgreSQL as a name.
fn refuse_unicode_escapes(tokens: &[TokenWithSpan]) -> Result<(), Refusal> {
    let escaped_name = tokens.windows(3).any(|window| {
        matches!(window, [first, second, third]
            if matches!(&first.token, Token::Word(word) if is_plain(word, "u"))
                && matches!(second.token, Token::Ampersand)
                && matches!(&third.token, Token::Word(word) if word.quote_style.is_some()))
    });
    let escaped_text =
        tokens.iter().any(|token| matches!(token.token, Token::UnicodeStringLiteral(_)));
    if escaped_name || escaped_text {
        return Err(Refusal::construct("A Unicode escape (U&'…' or U&\"…\")"));
    }
    Ok(())
}

fn is_plain(word: &Word, text: &str) -> bool {
    word.quote_style.is_none() && word.value.eq_ignore_ascii_case(text)
}

/// What one level of brackets adds to the depth.
#[derive(Default)]
struct Level {
    /// Operators since the last comma: a comma ends an expression.
    chain: usize,
    /// Joins and set operations, which reach across commas.
    across_commas: usize,
}

#[expect(clippy::wildcard_enum_match_arm, reason = "an unknown token counts as an operator")]
fn refuse_depth(tokens: &[TokenWithSpan]) -> Result<(), Refusal> {
    let mut levels = vec![Level::default()];
    let mut depth = 0_usize;
    for token in tokens {
        match &token.token {
            Token::LParen | Token::LBracket | Token::LBrace => {
                levels.push(Level::default());
                if levels.len() > NESTING_MAX {
                    return Err(too_deep("brackets", NESTING_MAX));
                }
            }
            Token::RParen | Token::RBrace => depth -= close(&mut levels),
            Token::RBracket => {
                depth -= close(&mut levels);
                depth += count_chain(&mut levels);
            }
            Token::Comma => {
                if let Some(level) = levels.last_mut() {
                    depth -= level.chain;
                    level.chain = 0;
                }
            }
            Token::Word(word) if reaches_across_commas(word) => {
                if let Some(level) = levels.last_mut() {
                    level.across_commas += 1;
                    depth += 1;
                }
            }
            token if adds_no_depth(token) => {}
            _ => depth += count_chain(&mut levels),
        }
        if depth > CHAIN_MAX {
            return Err(too_deep("operators", CHAIN_MAX));
        }
    }
    Ok(())
}

/// Leaves a level and gives back what it had added; the outermost level is never left.
fn close(levels: &mut Vec<Level>) -> usize {
    if levels.len() < 2 {
        return 0;
    }
    levels.pop().map_or(0, |level| level.chain + level.across_commas)
}

fn count_chain(levels: &mut [Level]) -> usize {
    levels.last_mut().map_or(0, |level| {
        level.chain += 1;
        1
    })
}

fn reaches_across_commas(word: &Word) -> bool {
    matches!(
        word.keyword,
        Keyword::UNION | Keyword::EXCEPT | Keyword::INTERSECT | Keyword::MINUS | Keyword::JOIN
    )
}

/// Names, literals and separators. Whatever is not listed counts as an operator.
#[expect(clippy::wildcard_enum_match_arm, reason = "an unknown token counts as an operator")]
fn adds_no_depth(token: &Token) -> bool {
    match token {
        Token::Word(word) => word.quote_style.is_some() || word.keyword == Keyword::NoKeyword,
        Token::EOF
        | Token::Number(..)
        | Token::SingleQuotedString(_)
        | Token::EscapedStringLiteral(_)
        | Token::DollarQuotedString(_)
        | Token::Whitespace(_)
        | Token::Period
        | Token::SemiColon => true,
        _ => false,
    }
}

fn too_deep(what: &str, most: usize) -> Refusal {
    Refusal::because(
        "nesting",
        format!("The text nests too deeply: at most {most} {what} inside or after one another."),
    )
}

/// Names the statement's first word when it cannot begin a SELECT, also where the parser knows no
/// such statement.
fn refuse_other_statements(tokens: &[TokenWithSpan]) -> Result<(), Refusal> {
    let first = tokens
        .iter()
        .map(|token| &token.token)
        .find(|token| !matches!(token, Token::Whitespace(_) | Token::SemiColon | Token::LParen));
    match first {
        None | Some(Token::EOF) => {
            Err(Refusal::because("empty text", "There is no statement in the text."))
        }
        Some(Token::Word(word))
            if word.quote_style.is_none()
                && !matches!(word.keyword, Keyword::SELECT | Keyword::WITH | Keyword::VALUES) =>
        {
            Err(Refusal::construct(word.value.to_uppercase()))
        }
        Some(_) => Ok(()),
    }
}
