//! The body of an export: what the task hands over, and never a clean end unless the task gave one.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame};
use tokio::sync::mpsc;
use tokio_util::sync::DropGuard;

/// A piece of the file.
#[derive(Debug)]
pub(super) struct Piece {
    pub(super) bytes: Bytes,
    /// How many events are in it.
    pub(super) rows: u64,
    /// Whether it carries the mark that ends the file.
    pub(super) is_last: bool,
}

/// How a file can stand: nothing but its mark makes it whole, and once it is broken off nothing does.
const OPEN: u8 = 0;
const WHOLE: u8 = 1;
const BROKEN: u8 = 2;

/// What the connection has taken, as the task sees it.
#[derive(Debug, Default)]
pub(super) struct Progress {
    rows: AtomicU64,
    state: AtomicU8,
}

impl Progress {
    /// Events handed to the connection.
    pub(super) fn rows(&self) -> u64 {
        self.rows.load(Ordering::Acquire)
    }

    /// Whether the mark that ends the file was handed to the connection.
    pub(super) fn is_whole(&self) -> bool {
        self.state.load(Ordering::Acquire) == WHOLE
    }

    fn is_broken(&self) -> bool {
        self.state.load(Ordering::Acquire) == BROKEN
    }

    /// Lets the connection take no more; false when it has the mark already.
    pub(super) fn break_off(&self) -> bool {
        self.settle(BROKEN) != WHOLE
    }

    /// Gives an open file this state; the answer is the state that it then has.
    fn settle(&self, state: u8) -> u8 {
        let exchanged =
            self.state.compare_exchange(OPEN, state, Ordering::AcqRel, Ordering::Acquire);
        exchanged.map_or_else(|found| found, |_open| state)
    }
}

/// The task behind an export ended without the mark: the connection must break, not end.
#[derive(Debug, thiserror::Error)]
#[error("the export was broken off")]
pub(super) struct BrokenOff;

/// The body. Dropping it tells the task that its client has left.
#[derive(Debug)]
pub(super) struct ExportBody {
    pieces: mpsc::Receiver<Piece>,
    progress: Arc<Progress>,
    _left: DropGuard,
}

impl ExportBody {
    pub(super) fn new(
        pieces: mpsc::Receiver<Piece>,
        progress: Arc<Progress>,
        left: DropGuard,
    ) -> Self {
        Self { pieces, progress, _left: left }
    }
}

impl Body for ExportBody {
    type Data = Bytes;
    type Error = BrokenOff;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        if self.progress.is_broken() {
            return Poll::Ready(Some(Err(BrokenOff)));
        }
        // The task keeps its side open until the body is dropped: the mark ends the file.
        if self.progress.is_whole() {
            return Poll::Ready(None);
        }
        match self.pieces.poll_recv(context) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Some(piece)) => {
                if piece.is_last && self.progress.settle(WHOLE) != WHOLE {
                    return Poll::Ready(Some(Err(BrokenOff)));
                }
                self.progress.rows.fetch_add(piece.rows, Ordering::AcqRel);
                Poll::Ready(Some(Ok(Frame::data(piece.bytes))))
            }
            Poll::Ready(None) => Poll::Ready(Some(Err(BrokenOff))),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.progress.is_whole()
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;
    use tokio_util::sync::CancellationToken;

    use super::*;

    fn last() -> Piece {
        Piece { bytes: Bytes::from_static(b"the mark"), rows: 2, is_last: true }
    }

    fn body() -> (mpsc::Sender<Piece>, Arc<Progress>, ExportBody) {
        let (sender, pieces) = mpsc::channel(1);
        let progress = Arc::new(Progress::default());
        let left = CancellationToken::new().drop_guard();
        (sender, Arc::clone(&progress), ExportBody::new(pieces, progress, left))
    }

    #[tokio::test]
    async fn a_mark_that_waits_does_not_leave_once_the_file_is_broken_off() {
        let (sender, progress, mut body) = body();
        sender.send(last()).await.unwrap();
        assert!(progress.break_off());
        drop(sender);
        assert!(body.frame().await.unwrap().is_err());
        assert_eq!((progress.rows(), progress.is_whole()), (0, false));
    }

    #[tokio::test]
    async fn a_file_whose_mark_has_left_cannot_be_broken_off() {
        let (sender, progress, mut body) = body();
        sender.send(last()).await.unwrap();
        assert!(body.frame().await.unwrap().is_ok());
        assert!(!progress.break_off());
        assert!(body.frame().await.is_none());
        assert_eq!((progress.rows(), progress.is_whole()), (2, true));
    }
}
