//! The text form of a key: values and a tag, bound to list, filter, order and version.

use sha2::{Digest as _, Sha256};

use super::{Key, Microseconds};

/// Changes whenever the meaning of a cursor does.
const VERSION: u8 = 1;

const TAG: usize = 8;
const LENGTH: usize = 1 + 8 + 8 + TAG;

/// The longest text that is a key.
const TEXT_BYTES: usize = 1024;

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
        let mut bytes = Vec::with_capacity(LENGTH);
        bytes.push(VERSION);
        bytes.extend_from_slice(&key.at.0.to_be_bytes());
        bytes.extend_from_slice(&key.id.to_be_bytes());
        let tag = self.tag(&bytes);
        bytes.extend_from_slice(&tag);
        hexadecimal(bytes.iter())
    }

    /// The cursor that leads behind a row whose whole key is this text.
    pub fn encode_text(&self, text: &str) -> String {
        let tag = self.tag(&tagged(text));
        hexadecimal([VERSION].iter().chain(&tag).chain(text.as_bytes()))
    }

    /// The text in a cursor; nothing unless it was made by this very scope and is unchanged.
    pub fn decode_text(&self, cursor: &str) -> Option<String> {
        // Longer than any key: not read at all.
        if cursor.len() > 2 * (1 + TAG + TEXT_BYTES) || !cursor.len().is_multiple_of(2) {
            return None;
        }
        let bytes: Vec<u8> = cursor.as_bytes().chunks_exact(2).map(byte).collect::<Option<_>>()?;
        let (version, rest) = bytes.split_first()?;
        let (tag, text) = rest.split_at_checked(TAG)?;
        let text = std::str::from_utf8(text).ok()?;
        (*version == VERSION && tag == self.tag(&tagged(text))).then(|| text.to_owned())
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

/// What the tag of a text is made of: nothing that a key of numbers could be.
fn tagged(text: &str) -> Vec<u8> {
    [b"text ", text.as_bytes()].concat()
}

fn hexadecimal<'a>(bytes: impl Iterator<Item = &'a u8>) -> String {
    use std::fmt::Write as _;
    bytes.fold(String::with_capacity(LENGTH * 2), |mut text, byte| {
        // Writing to a String does not fail.
        write!(text, "{byte:02x}").ok();
        text
    })
}

fn bytes(hexadecimal: &str) -> Option<[u8; LENGTH]> {
    if hexadecimal.len() != LENGTH * 2 {
        return None;
    }
    let mut bytes = [0; LENGTH];
    for (to, pair) in bytes.iter_mut().zip(hexadecimal.as_bytes().chunks_exact(2)) {
        *to = byte(pair)?;
    }
    Some(bytes)
}

fn byte(pair: &[u8]) -> Option<u8> {
    // One form only: upper case would be a second name for the same cursor.
    let digit = |digit: u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    };
    let &[high, low] = pair else { return None };
    Some(digit(high)? << 4 | digit(low)?)
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
        fn every_text_survives_its_cursor(key in "\\PC{0,128}", filter: Vec<u8>) {
            let scope = Scope::new("list", &filter);
            prop_assert_eq!(scope.decode_text(&scope.encode_text(&key)), Some(key.clone()));
            prop_assert_eq!(Scope::new("other", &filter).decode_text(&scope.encode_text(&key)), None);
        }

        #[test]
        fn a_changed_cursor_of_a_text_is_no_cursor(key in "[a-z]{1,9}", place in 0_usize..20, digit in "[0-9a-zA-Z%]") {
            let scope = Scope::new("list", b"");
            let cursor = scope.encode_text(&key);
            let mut changed = cursor.clone();
            changed.replace_range(place..=place, &digit);
            if changed != cursor {
                prop_assert_eq!(scope.decode_text(&changed), None);
            }
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
            Scope::new("list", b"").decode_text(&text);
        }
    }
}
