//! The body of an export: what the task hands over, and never a clean end unless the task gave one.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
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

/// What the connection has taken, as the task sees it.
#[derive(Debug, Default)]
pub(super) struct Progress {
    rows: AtomicU64,
    is_whole: AtomicBool,
}

impl Progress {
    /// Events handed to the connection.
    pub(super) fn rows(&self) -> u64 {
        self.rows.load(Ordering::Acquire)
    }

    /// Whether the mark that ends the file was handed to the connection.
    pub(super) fn is_whole(&self) -> bool {
        self.is_whole.load(Ordering::Acquire)
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
        // The task keeps its side open until the body is dropped: the mark ends the file.
        if self.progress.is_whole() {
            return Poll::Ready(None);
        }
        match self.pieces.poll_recv(context) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Some(piece)) => {
                self.progress.rows.fetch_add(piece.rows, Ordering::AcqRel);
                self.progress.is_whole.fetch_or(piece.is_last, Ordering::AcqRel);
                Poll::Ready(Some(Ok(Frame::data(piece.bytes))))
            }
            Poll::Ready(None) => Poll::Ready(Some(Err(BrokenOff))),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.progress.is_whole()
    }
}
