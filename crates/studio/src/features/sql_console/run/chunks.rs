//! Text that grows in pieces, so that growing never copies what is there.

use std::io;

use bytes::Bytes;
use memmap2::MmapMut;

const PIECE_BYTES: usize = 1 << 20;

/// Bytes in the order they were written.
///
/// Pieces are mapped and not taken from the allocator: that keeps what a thread has freed for the
/// same thread, so large answers on ever other threads would add up in resident memory.
#[derive(Debug, Default)]
pub(super) struct Chunks {
    full: Vec<Bytes>,
    open: Option<MmapMut>,
    /// Bytes written into `open`.
    filled: usize,
    len: usize,
}

impl Chunks {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The pieces, none of them empty.
    pub(super) fn into_pieces(mut self) -> Vec<Bytes> {
        self.close();
        self.full
    }

    fn close(&mut self) {
        if let Some(piece) = self.open.take() {
            self.full.push(Bytes::from_owner(piece).slice(..self.filled));
            self.filled = 0;
        }
    }
}

impl io::Write for Chunks {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let piece = match &mut self.open {
            Some(piece) => piece,
            empty => empty.insert(MmapMut::map_anon(PIECE_BYTES)?),
        };
        let mut room = piece.get_mut(self.filled..).unwrap_or_default();
        let taken = room.write(bytes)?;
        self.filled += taken;
        self.len += taken;
        if self.filled == PIECE_BYTES {
            self.close();
        }
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Counts what is written.
#[derive(Debug, Default)]
pub(super) struct Counter(pub(super) usize);

impl io::Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
