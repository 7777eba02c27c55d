//! Reading an export piece by piece: each in a transaction of its own, into a bounded buffer.

use bytes::BytesMut;
use deadpool_postgres::Object;
use futures_util::TryStreamExt as _;

use super::super::event::Event;
use super::super::filter::{CHUNK, CHUNK_TYPES, Filter};
use super::format::Format;
use crate::platform::audit::Bound;
use crate::platform::paging::{Key, Microseconds};

/// The most bytes of one piece.
pub(super) const PIECE_BYTES: usize = 4 << 20;

/// The most rows that one statement reads: about half of what a piece has room for, since what it has none for is read
/// for nothing. It also bounds how long a snapshot lives, and how much memory an export takes.
const PIECE_ROWS: u64 = 8_192;

/// What was settled when the export began; nothing else is read, so that what is written meanwhile changes nothing.
#[derive(Debug, Clone)]
pub(super) struct Settled {
    /// The oldest transaction that still wrote to the trail then, or the next one.
    pub(super) horizon: String,
    /// The next transaction.
    pub(super) next: String,
    /// The time, which later rows are not older than.
    pub(super) began: Microseconds,
}

/// How far an export has come.
#[derive(Debug, Clone)]
pub(super) struct Place {
    /// The last event written.
    pub(super) key: Key,
    pub(super) settled: Settled,
    /// How many events and bytes may still be written.
    pub(super) rows_left: u64,
    pub(super) bytes_left: u64,
}

impl Place {
    pub(super) fn new(filter: &Filter, settled: Settled, rows: u64, bytes: u64) -> Self {
        // Just before the first time asked for: no id is lower.
        let key = Key { at: filter.from, id: i64::MIN };
        Self { key, settled, rows_left: rows, bytes_left: bytes }
    }
}

/// What one read gave.
#[derive(Debug)]
pub(super) struct Read {
    pub(super) bytes: BytesMut,
    pub(super) rows: u64,
    pub(super) place: Place,
    pub(super) end: Option<End>,
}

/// Why there is no more to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Complete,
    Cut(Bound),
}

/// Reads the next piece into `bytes`, which may hold the beginning of the file already.
pub(super) async fn read(
    connection: &Object,
    filter: &Filter,
    format: Format,
    mut place: Place,
    mut bytes: BytesMut,
) -> Result<Read, tokio_postgres::Error> {
    // One more than may be written tells whether there is more.
    let most = PIECE_ROWS.min(place.rows_left.saturating_add(1));
    let limit = i64::try_from(most).unwrap_or(i64::MAX);
    let [actor, action, outcome] = filter.values();
    let Key { at, id } = place.key;
    let statement = connection.prepare_typed_cached(CHUNK.of(filter), &CHUNK_TYPES).await?;
    let Settled { horizon, next, began } = &place.settled;
    let to = filter.to.min(*began);
    let parameters: [&(dyn tokio_postgres::types::ToSql + Sync); 9] =
        [&at, &id, &to, horizon, &limit, &actor, &action, &outcome, next];
    let stream = connection.query_raw(&statement, parameters).await?;
    let mut stream = std::pin::pin!(stream);

    let (mut rows, mut seen, mut is_full, mut end) = (0_u64, 0_u64, false, None);
    while let Some(row) = stream.try_next().await? {
        seen += 1;
        // A stream must be read to its end, or the connection is not free.
        if is_full {
            continue;
        }
        if place.rows_left == 0 {
            (is_full, end) = (true, Some(End::Cut(Bound::Rows)));
            continue;
        }
        let before = bytes.len();
        let event = Event::read(&row)?;
        format.write(&event, &mut bytes);
        let written = u64::try_from(bytes.len() - before).unwrap_or(u64::MAX);
        if written > place.bytes_left {
            bytes.truncate(before);
            (is_full, end) = (true, Some(End::Cut(Bound::Bytes)));
            continue;
        }
        if bytes.len() > PIECE_BYTES && rows > 0 {
            bytes.truncate(before);
            is_full = true;
            continue;
        }
        place.key = event.key();
        place.rows_left -= 1;
        place.bytes_left -= written;
        rows += 1;
    }
    if !is_full && seen < most {
        end = Some(End::Complete);
    }
    Ok(Read { bytes, rows, place, end })
}
