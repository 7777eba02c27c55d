//! One event of the trail, written by hand as JSON and as CSV: an export writes millions.

use bytes::{BufMut as _, BytesMut};
use serde::{Deserialize, Serialize};
use tokio_postgres::Row;
use uuid::Uuid;

use crate::platform::paging::{Key, Microseconds};
use crate::platform::timestamp;

/// An event as documented; [`Event::write_json`] writes the same.
#[derive(Debug, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
#[serde(deny_unknown_fields)]
pub struct AuditEvent {
    /// A 64-bit number.
    #[schema(example = "42")]
    pub id: String,
    /// When the act began.
    #[schema(example = "2026-01-31T23:59:59.000001Z")]
    pub at: String,
    /// The account, unless the act was none of an account's.
    pub actor_id: Option<Uuid>,
    /// The account's name at that time.
    pub actor: String,
    /// What was done.
    pub action: String,
    /// To what.
    pub target: String,
    /// `open`, `complete`, `partial`, `aborted_by_client`, `failed` or `interrupted`.
    pub outcome: String,
    /// The bound reached by a partial answer (`ROWS`, `TIME`, `BYTES`), or why it failed.
    pub bound: Option<String>,
    /// Rows answered, a 64-bit number.
    pub rows: Option<String>,
    /// When the outcome was known.
    pub finished_at: Option<String>,
    /// The request's id.
    pub request_id: Option<String>,
    /// More about the act.
    #[schema(value_type = Object)]
    pub detail: serde_json::Value,
}

/// A row of `page.sql` or `chunk.sql`, borrowed.
#[derive(Debug)]
pub(super) struct Event<'a> {
    id: i64,
    at: Microseconds,
    actor_id: Option<Uuid>,
    actor: &'a str,
    action: &'a str,
    target: &'a str,
    outcome: &'a str,
    bound: Option<&'a str>,
    rows: Option<i64>,
    finished_at: Option<Microseconds>,
    request_id: Option<&'a str>,
    detail: &'a str,
}

impl<'a> Event<'a> {
    pub(super) fn read(row: &'a Row) -> Result<Self, tokio_postgres::Error> {
        Ok(Self {
            id: row.try_get(0)?,
            at: row.try_get(1)?,
            actor_id: row.try_get(2)?,
            actor: row.try_get(3)?,
            action: row.try_get(4)?,
            target: row.try_get(5)?,
            outcome: row.try_get(6)?,
            bound: row.try_get(7)?,
            rows: row.try_get(8)?,
            finished_at: row.try_get(9)?,
            request_id: row.try_get(10)?,
            detail: row.try_get(11)?,
        })
    }

    pub(super) fn key(&self) -> Key {
        Key { at: self.at, id: self.id }
    }

    /// A JSON object without a line end.
    pub(super) fn write_json(&self, out: &mut BytesMut) {
        out.put_slice(b"{\"id\":\"");
        put_integer(out, self.id);
        out.put_slice(b"\",\"at\":\"");
        out.put_slice(&timestamp::rfc3339(self.at.0));
        out.put_slice(b"\",\"actorId\":");
        match self.actor_id {
            Some(id) => {
                out.put_u8(b'"');
                put_uuid(out, id);
                out.put_u8(b'"');
            }
            None => out.put_slice(b"null"),
        }
        for (name, text) in [
            (&b",\"actor\":"[..], Some(self.actor)),
            (b",\"action\":", Some(self.action)),
            (b",\"target\":", Some(self.target)),
            (b",\"outcome\":", Some(self.outcome)),
            (b",\"bound\":", self.bound),
        ] {
            out.put_slice(name);
            put_json_text(out, text);
        }
        match self.rows {
            Some(rows) => {
                out.put_slice(b",\"rows\":\"");
                put_integer(out, rows);
                out.put_u8(b'"');
            }
            None => out.put_slice(b",\"rows\":null"),
        }
        match self.finished_at {
            Some(at) => {
                out.put_slice(b",\"finishedAt\":\"");
                out.put_slice(&timestamp::rfc3339(at.0));
                out.put_u8(b'"');
            }
            None => out.put_slice(b",\"finishedAt\":null"),
        }
        out.put_slice(b",\"requestId\":");
        put_json_text(out, self.request_id);
        // The server's own rendering of a jsonb value: one line of JSON.
        out.put_slice(b",\"detail\":");
        out.put_slice(self.detail.as_bytes());
        out.put_u8(b'}');
    }

    /// The header of the CSV form.
    pub(super) const CSV_HEADER: &'static [u8] =
        b"id,at,actor_id,actor,action,target,outcome,bound,rows,finished_at,request_id,detail\r\n";

    /// A CSV record with its line end.
    pub(super) fn write_csv(&self, out: &mut BytesMut) {
        put_integer(out, self.id);
        out.put_u8(b',');
        out.put_slice(&timestamp::rfc3339(self.at.0));
        out.put_u8(b',');
        if let Some(id) = self.actor_id {
            put_uuid(out, id);
        }
        for text in
            [self.actor, self.action, self.target, self.outcome, self.bound.unwrap_or_default()]
        {
            out.put_u8(b',');
            put_csv_text(out, text);
        }
        out.put_u8(b',');
        if let Some(rows) = self.rows {
            put_integer(out, rows);
        }
        out.put_u8(b',');
        if let Some(at) = self.finished_at {
            out.put_slice(&timestamp::rfc3339(at.0));
        }
        for text in [self.request_id.unwrap_or_default(), self.detail] {
            out.put_u8(b',');
            put_csv_text(out, text);
        }
        out.put_slice(b"\r\n");
    }
}

fn put_integer(out: &mut BytesMut, value: i64) {
    let mut digits = [0_u8; 20];
    let mut rest = value.unsigned_abs();
    let mut count = 0;
    for digit in digits.iter_mut().rev() {
        // A remainder of ten fits a byte.
        *digit = b'0' + u8::try_from(rest % 10).unwrap_or(0);
        rest /= 10;
        count += 1;
        if rest == 0 {
            break;
        }
    }
    if value < 0 {
        out.put_u8(b'-');
    }
    out.put_slice(digits.get(20 - count..).unwrap_or_default());
}

fn put_uuid(out: &mut BytesMut, id: Uuid) {
    let mut text = Uuid::encode_buffer();
    out.put_slice(id.hyphenated().encode_lower(&mut text).as_bytes());
}

fn put_json_text(out: &mut BytesMut, text: Option<&str>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let Some(text) = text else {
        out.put_slice(b"null");
        return;
    };
    out.put_u8(b'"');
    let mut rest = text.as_bytes();
    while let Some(place) = rest.iter().position(|byte| matches!(byte, 0..0x20 | b'"' | b'\\')) {
        let (plain, special) = rest.split_at(place);
        out.put_slice(plain);
        let Some((byte, after)) = special.split_first() else { break };
        match byte {
            b'"' | b'\\' => out.put_slice(&[b'\\', *byte]),
            _ => {
                let digit = |value: u8| DIGITS.get(usize::from(value)).copied().unwrap_or(b'0');
                out.put_slice(&[b'\\', b'u', b'0', b'0', digit(byte >> 4), digit(byte & 15)]);
            }
        }
        rest = after;
    }
    out.put_slice(rest);
    out.put_u8(b'"');
}

/// Writes a text cell. One that a spreadsheet would run gets a leading `'`; see [`would_run`].
fn put_csv_text(out: &mut BytesMut, text: &str) {
    let would_run = would_run(text);
    let needs_quotes = text.bytes().any(|byte| matches!(byte, b',' | b'"' | b'\r' | b'\n'));
    if !needs_quotes {
        if would_run {
            out.put_u8(b'\'');
        }
        out.put_slice(text.as_bytes());
        return;
    }
    out.put_u8(b'"');
    if would_run {
        out.put_u8(b'\'');
    }
    let mut pieces = text.split('"');
    out.put_slice(pieces.next().unwrap_or_default().as_bytes());
    for piece in pieces {
        out.put_slice(b"\"\"");
        out.put_slice(piece.as_bytes());
    }
    out.put_u8(b'"');
}

/// Whether a spreadsheet may take the cell for a formula: after blanks it begins with `= + - @`, a control that is
/// skipped like a blank, or the full-width form of one of the four.
fn would_run(text: &str) -> bool {
    let first = text.chars().next();
    if first.is_some_and(|first| matches!(first, '\t' | '\r' | '\n')) {
        return true;
    }
    text.trim_start_matches(|character: char| {
        character.is_whitespace() || character.is_control() || is_invisible(character)
    })
    .starts_with(['=', '+', '-', '@', '\u{ff1d}', '\u{ff0b}', '\u{ff0d}', '\u{ff20}'])
}

/// Characters without width, behind which a formula could hide.
fn is_invisible(character: char) -> bool {
    matches!(character, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2064}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use bytes::BytesMut;
    use proptest::prelude::*;

    use super::{put_csv_text, put_integer, put_json_text};

    fn csv(text: &str) -> String {
        let mut out = BytesMut::new();
        put_csv_text(&mut out, text);
        String::from_utf8(out.to_vec()).unwrap()
    }

    #[test]
    fn cells_that_spreadsheets_run_are_disarmed() {
        for cell in [
            "=1+1",
            "+1",
            "-1",
            "@SUM(A1)",
            "\t=1",
            "  =1",
            "\u{a0}=1",
            "\u{ff1d}1",
            "\u{ff0b}1",
            "\u{ff0d}1",
            "\u{ff20}x",
            "\tx",
            "\u{feff}=1",
            "\u{200b}=1",
        ] {
            assert!(csv(cell).starts_with('\''), "{cell:?}");
        }
        for cell in ["\rx", "\nx", "=cmd|' /C calc'!A0,\"x\""] {
            assert!(csv(cell).starts_with("\"'"), "{cell:?}");
        }
    }

    #[test]
    fn harmless_cells_stay_as_they_are() {
        for cell in ["", "orders.in", "1-2", "a=b", "{\"a\": -1}'"] {
            assert!(!csv(cell).trim_start_matches('"').starts_with("'="), "{cell:?}");
        }
        assert_eq!(csv("orders.in"), "orders.in");
        assert_eq!(csv("a,\"b\""), "\"a,\"\"b\"\"\"");
    }

    proptest! {
        #[test]
        fn integers_are_written_as_they_are(value: i64) {
            let mut out = BytesMut::new();
            put_integer(&mut out, value);
            let expected = value.to_string();
            prop_assert_eq!(out.as_ref(), expected.as_bytes());
        }

        #[test]
        fn texts_survive_json(text: String) {
            let mut out = BytesMut::new();
            put_json_text(&mut out, Some(&text));
            prop_assert_eq!(serde_json::from_slice::<String>(&out).unwrap(), text);
        }
    }
}
