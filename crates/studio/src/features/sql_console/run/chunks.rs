//! Bytes that grow in pieces, so that growing never copies what is there.

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

    pub(super) fn write(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let piece = match &mut self.open {
                Some(piece) => piece,
                empty => empty.insert(MmapMut::map_anon(PIECE_BYTES)?),
            };
            let mut room = piece.get_mut(self.filled..).unwrap_or_default();
            let taken = io::Write::write(&mut room, bytes)?;
            bytes = bytes.get(taken..).unwrap_or_default();
            self.filled += taken;
            self.len += taken;
            if self.filled == PIECE_BYTES {
                self.close();
            }
        }
        Ok(())
    }

    /// Forgets what lies behind the first `len` bytes.
    pub(super) fn truncate(&mut self, len: usize) {
        self.close();
        while self.len > len
            && let Some(mut last) = self.full.pop()
        {
            let before = self.len - last.len();
            if before < len {
                last.truncate(len - before);
                self.full.push(last);
                self.len = len;
            } else {
                self.len = before;
            }
        }
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 50, ..ProptestConfig::default() })]

        #[test]
        fn they_hold_what_was_written_and_not_truncated(
            steps in prop::collection::vec((0_usize..700_000, prop::option::of(0_usize..3_000_000)), 0..12)
        ) {
            let (mut chunks, mut plain) = (Chunks::default(), Vec::new());
            for (number, (size, truncated)) in steps.into_iter().enumerate() {
                let bytes = vec![u8::try_from(number).unwrap(); size];
                chunks.write(&bytes).unwrap();
                plain.extend(bytes);
                if let Some(len) = truncated {
                    chunks.truncate(len);
                    plain.truncate(len);
                }
                prop_assert_eq!(chunks.len(), plain.len());
            }
            let pieces = chunks.into_pieces();
            prop_assert!(pieces.iter().all(|piece| !piece.is_empty()));
            prop_assert!(pieces.concat() == plain);
        }
    }
}
