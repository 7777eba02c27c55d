//! Text that grows in pieces, so that growing never copies what is there.

use std::io;

use bytes::Bytes;

const PIECE_BYTES: usize = 64 << 10;

/// Bytes in the order they were written.
#[derive(Debug, Default)]
pub(super) struct Chunks {
    full: Vec<Bytes>,
    open: Vec<u8>,
    len: usize,
}

impl Chunks {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The pieces, none of them empty.
    pub(super) fn into_pieces(mut self) -> Vec<Bytes> {
        if !self.open.is_empty() {
            self.full.push(self.open.into());
        }
        self.full
    }
}

impl io::Write for Chunks {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.open.capacity() == 0 {
            self.open.reserve_exact(PIECE_BYTES);
        }
        let taken = bytes.len().min(PIECE_BYTES - self.open.len());
        self.open.extend(bytes.iter().take(taken));
        self.len += taken;
        if self.open.len() == PIECE_BYTES {
            self.full.push(std::mem::take(&mut self.open).into());
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
