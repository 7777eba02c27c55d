//! The answer, written as JSON while its rows arrive.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use serde::Serialize;

use super::chunks::Chunks;
use crate::features::sql_console::bounds::{self, Limits, Reached};
use crate::platform::heavy::Endpoint;

/// Kept free for what follows the rows.
const TAIL_BYTES: usize = 16 << 10;

/// How many cut values are named; the rest is only counted.
const CUT_NAMED: usize = 100;

/// The answer to a query. Values are text as PostgreSQL writes them, null is null.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = SqlAnswer)]
pub(crate) struct Document {
    columns: Vec<Column>,
    rows: Vec<Vec<Option<String>>>,
    #[serde(flatten)]
    end: End,
}

/// A column of an answer.
#[derive(Debug, Clone, Serialize, utoipa::ToSchema)]
#[schema(as = SqlColumn)]
pub(crate) struct Column {
    pub name: String,
    /// The type's name in PostgreSQL, such as `int8` or `timestamptz`.
    #[serde(rename = "type")]
    pub data_type: String,
}

/// What follows the rows.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = SqlAnswerEnd)]
pub(crate) struct End {
    row_count: u64,
    /// Whether these are all rows, each with its whole values.
    complete: bool,
    /// The first bound that cut the answer.
    bound: Option<Reached>,
    cut_cells: CutCells,
    limits: Limits,
    elapsed_ms: u64,
}

/// Values that were longer than their bound.
#[derive(Debug, Clone, Default, Serialize, utoipa::ToSchema)]
#[schema(as = SqlCutCells)]
pub(crate) struct CutCells {
    count: u64,
    /// The first of them, at most 100.
    first: Vec<CutCell>,
}

/// A place in `rows`, both counted from zero.
#[derive(Debug, Clone, Copy, Serialize, utoipa::ToSchema)]
#[schema(as = SqlCutCell)]
pub(crate) struct CutCell {
    row: u64,
    column: i32,
}

/// Whether more rows fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Room {
    More,
    Full,
}

/// An answer that grows.
#[derive(Debug)]
pub(crate) struct Answer {
    /// With its bounds in force when the query was admitted.
    endpoint: Endpoint,
    head: Vec<u8>,
    /// Whole rows with commas between, and perhaps the beginning of one more.
    rows: Chunks,
    row_count: u64,
    /// Where the row begins that has not ended yet.
    row_begins: Option<usize>,
    reached: Option<Reached>,
    cut: CutCells,
}

impl Answer {
    /// An empty one, bounded by that endpoint.
    pub(super) fn new(endpoint: &Endpoint) -> Self {
        Self {
            endpoint: *endpoint,
            head: Vec::new(),
            rows: Chunks::default(),
            row_count: 0,
            row_begins: None,
            reached: None,
            cut: CutCells::default(),
        }
    }

    /// The number of rows so far.
    pub(crate) fn row_count(&self) -> u64 {
        self.row_count
    }

    /// The bound that cut the answer.
    pub(crate) fn bound(&self) -> Option<Reached> {
        self.reached.or_else(|| (self.cut.count > 0).then_some(Reached::Cell))
    }

    /// Says that the time bound came before the last row.
    pub(crate) fn stop_at_time_bound(&mut self) {
        self.reached.get_or_insert(Reached::Time);
    }

    pub(super) fn begin(&mut self, columns: &[Column]) -> Result<(), serde_json::Error> {
        self.head.extend(b"{\"columns\":");
        serde_json::to_writer(&mut self.head, columns)?;
        self.head.extend(b",\"rows\":[");
        Ok(())
    }

    /// Adds a piece of a row, unless the row does not fit. With the row's end come the numbers of its
    /// columns, from 1, whose values were cut.
    pub(super) fn push(
        &mut self,
        piece: &[u8],
        is_end: bool,
        cut: Option<&[i32]>,
    ) -> io::Result<Room> {
        if self.row_begins.is_none() {
            if self.row_count >= bounds::rows(&self.endpoint) {
                return Ok(self.stop(Reached::Rows));
            }
            self.row_begins = Some(self.rows.len());
            self.rows.write(if self.row_count > 0 { b"," } else { b"" })?;
        }
        let most = usize::try_from(bounds::answer_bytes(&self.endpoint)).unwrap_or(usize::MAX);
        if self.head.len() + self.rows.len() + piece.len() + TAIL_BYTES > most {
            return Ok(self.stop(Reached::Bytes));
        }
        self.rows.write(piece)?;
        if is_end {
            for column in cut.unwrap_or_default() {
                self.cut.count += 1;
                if self.cut.first.len() < CUT_NAMED {
                    self.cut.first.push(CutCell { row: self.row_count, column: column - 1 });
                }
            }
            self.row_count += 1;
            self.row_begins = None;
        }
        Ok(Room::More)
    }

    fn stop(&mut self, reached: Reached) -> Room {
        self.forget_unfinished_row();
        self.reached = Some(reached);
        Room::Full
    }

    fn forget_unfinished_row(&mut self) {
        if let Some(begin) = self.row_begins.take() {
            self.rows.truncate(begin);
        }
    }

    /// The whole document, in pieces.
    pub(crate) fn finish(mut self, elapsed: Duration) -> Result<Vec<Bytes>, serde_json::Error> {
        self.forget_unfinished_row();
        let bound = self.bound();
        let end = End {
            row_count: self.row_count,
            complete: bound.is_none(),
            bound,
            cut_cells: self.cut,
            limits: bounds::limits(&self.endpoint),
            elapsed_ms: u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX),
        };
        let mut tail = b"],".to_vec();
        // The end's own brace gives way to the document's.
        tail.extend(serde_json::to_vec(&end)?.into_iter().skip(1));
        let mut pieces = vec![Bytes::from(self.head)];
        pieces.extend(self.rows.into_pieces());
        pieces.push(tail.into());
        Ok(pieces)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn document(answer: Answer) -> Value {
        let pieces = answer.finish(Duration::from_millis(7)).expect("it is written");
        serde_json::from_slice(&pieces.concat()).expect("it is JSON")
    }

    fn begun() -> Answer {
        let mut answer = Answer::new(&bounds::ENDPOINT);
        let column = Column { name: "a\"b".to_owned(), data_type: "text".to_owned() };
        answer.begin(&[column]).expect("it is written");
        answer
    }

    #[test]
    fn an_answer_is_one_document_also_when_rows_come_in_pieces() {
        let mut answer = begun();
        for (piece, is_end) in
            [("[\"x", false), ("\\n\"]", true), ("[null]", true), ("[\"y", false)]
        {
            assert_eq!(answer.push(piece.as_bytes(), is_end, None).unwrap(), Room::More);
        }
        let document = document(answer);
        assert_eq!(document["columns"], json!([{"name": "a\"b", "type": "text"}]));
        assert_eq!(
            document["rows"],
            json!([["x\n"], [null]]),
            "a row without its end is not in it"
        );
        assert_eq!(document["rowCount"], 2);
        assert_eq!(document["complete"], true);
        assert_eq!(document["bound"], Value::Null);
        assert_eq!(document["elapsedMs"], 7);
    }

    #[test]
    fn the_row_after_the_last_is_not_in_it_but_names_the_bound() {
        let mut answer = begun();
        for _ in 0..10_000 {
            assert_eq!(answer.push(b"[\"1\"]", true, None).unwrap(), Room::More);
        }
        assert_eq!(answer.push(b"[\"1\"]", true, None).unwrap(), Room::Full);
        let document = document(answer);
        assert_eq!(document["rowCount"], 10_000);
        assert_eq!(document["rows"].as_array().map(Vec::len), Some(10_000));
        assert_eq!(document["bound"], "ROWS");
        assert_eq!(document["complete"], false);
    }

    #[test]
    fn an_answer_never_exceeds_its_bytes_and_ends_with_a_whole_row() {
        let mut answer = begun();
        let piece = vec![b'x'; 1 << 20];
        let mut pieces = 0;
        loop {
            let first = answer.push(b"[\"", false, None).unwrap();
            let second = (0..3)
                .map(|_| answer.push(&piece, false, None).unwrap())
                .max_by_key(|room| *room == Room::Full);
            if first == Room::Full || second == Some(Room::Full) {
                break;
            }
            answer.push(b"\"]", true, None).unwrap();
            pieces += 1;
        }
        let size: usize = answer.finish(Duration::ZERO).unwrap().iter().map(Bytes::len).sum();
        assert!(size <= 32 << 20, "{size}");
        assert_eq!(pieces, 10);
    }

    #[test]
    fn cut_values_are_counted_and_the_first_are_named() {
        let mut answer = begun();
        for _ in 0..101 {
            answer.push(b"[\"1\"]", true, Some(&[1])).unwrap();
        }
        let document = document(answer);
        assert_eq!(document["bound"], "CELL");
        assert_eq!(document["cutCells"]["count"], 101);
        assert_eq!(document["cutCells"]["first"].as_array().map(Vec::len), Some(100));
        assert_eq!(document["cutCells"]["first"][1], json!({"row": 1, "column": 0}));
    }
}
