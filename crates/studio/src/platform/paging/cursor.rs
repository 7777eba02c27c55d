//! The text form of a key: values and a tag, bound to list, filter, order and version.

use sha2::{Digest as _, Sha256};

use super::{Key, Microseconds};

/// Changes whenever the meaning of a cursor does.
const VERSION: u8 = 1;

const TAG: usize = 8;
const LENGTH: usize = 1 + 8 + 8 + TAG;

/// What a cursor is good for. The tag is no secret: a cursor carries no authorisation, only where to go on, and a
/// forged one reads nothing that its filter would not.
#[derive(Debug, Clone)]
pub struct Scope {
    digest: [u8; 32],
}

impl Scope {
    /// The scope of a list in its order (`audit newest first`) under a filter in any unambiguous form.
    pub fn new(list: &str, filter: &[u8]) -> Self {
        let mut hash = Sha256::new();
        hash.update(u64::try_from(list.len()).unwrap_or(u64::MAX).to_be_bytes());
        hash.update(list);
        hash.update(filter);
        Self { digest: hash.finalize().into() }
    }

    fn tag(&self, values: &[u8]) -> [u8; TAG] {
        let mut hash = Sha256::new();
        hash.update(self.digest);
        hash.update(values);
        let digest: [u8; 32] = hash.finalize().into();
        let mut tag = [0; TAG];
        for (to, from) in tag.iter_mut().zip(digest) {
            *to = from;
        }
        tag
    }

    /// The cursor that leads behind this key.
    pub fn encode(&self, key: Key) -> String {
        use std::fmt::Write as _;
        let mut bytes = Vec::with_capacity(LENGTH);
        bytes.push(VERSION);
        bytes.extend_from_slice(&key.at.0.to_be_bytes());
        bytes.extend_from_slice(&key.id.to_be_bytes());
        let tag = self.tag(&bytes);
        bytes.extend_from_slice(&tag);
        bytes.iter().fold(String::with_capacity(LENGTH * 2), |mut text, byte| {
            // Writing to a String does not fail.
            write!(text, "{byte:02x}").ok();
            text
        })
    }

    /// The key in a cursor; nothing unless it was made by this very scope and is unchanged.
    pub fn decode(&self, cursor: &str) -> Option<Key> {
        let bytes = bytes(cursor)?;
        let (values, tag) = bytes.split_at_checked(LENGTH - TAG)?;
        if tag != self.tag(values) {
            return None;
        }
        let (version, values) = values.split_first()?;
        let (at, id) = values.split_at_checked(8)?;
        (*version == VERSION).then_some(Key {
            at: Microseconds(i64::from_be_bytes(at.try_into().ok()?)),
            id: i64::from_be_bytes(id.try_into().ok()?),
        })
    }
}

fn bytes(hexadecimal: &str) -> Option<[u8; LENGTH]> {
    // One form only: upper case would be a second name for the same cursor.
    let digit = |digit: u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    };
    if hexadecimal.len() != LENGTH * 2 {
        return None;
    }
    let mut bytes = [0; LENGTH];
    for (byte, pair) in bytes.iter_mut().zip(hexadecimal.as_bytes().chunks_exact(2)) {
        let &[high, low] = pair else { return None };
        *byte = digit(high)? << 4 | digit(low)?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Key, Microseconds, Scope};

    fn key(at: i64, id: i64) -> Key {
        Key { at: Microseconds(at), id }
    }

    proptest! {
        #[test]
        fn every_key_survives_its_cursor(at: i64, id: i64, filter: Vec<u8>) {
            let scope = Scope::new("list", &filter);
            prop_assert_eq!(scope.decode(&scope.encode(key(at, id))), Some(key(at, id)));
        }

        #[test]
        fn a_changed_cursor_is_no_cursor(at: i64, id: i64, place in 0_usize..50, digit in "[0-9a-zA-Z%]") {
            let scope = Scope::new("list", b"");
            let cursor = scope.encode(key(at, id));
            let mut changed = cursor.clone();
            changed.replace_range(place..=place, &digit);
            if changed != cursor {
                prop_assert_eq!(scope.decode(&changed), None);
            }
        }

        #[test]
        fn a_foreign_cursor_is_no_cursor(at: i64, id: i64, one: Vec<u8>, other: Vec<u8>) {
            prop_assume!(one != other);
            let cursor = Scope::new("list", &one).encode(key(at, id));
            prop_assert_eq!(Scope::new("list", &other).decode(&cursor), None);
            prop_assert_eq!(Scope::new("another", &one).decode(&cursor), None);
        }

        #[test]
        fn no_text_makes_the_decoder_panic(text in "\\PC*") {
            Scope::new("list", b"").decode(&text);
        }
    }
}
