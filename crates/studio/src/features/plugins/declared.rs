//! What a request says of the plugin that it brings.

use http::{HeaderMap, StatusCode};

use super::MOST_BYTES;
use crate::platform::problem::Problem;

/// The longest name, in characters.
const NAME_CHARACTERS: usize = 200;

const SHA256: &str = "x-content-sha256";

/// What is known before the first byte.
#[derive(Debug)]
pub(super) struct Declared {
    pub(super) name: String,
    /// In hexadecimal, in lower case.
    pub(super) sha256: Option<String>,
}

impl Declared {
    /// Refuses what cannot be before any byte is read. `length` is the body's, where it is declared.
    pub(super) fn parse(
        name: &str,
        length: Option<u64>,
        headers: &HeaderMap,
    ) -> Result<Self, Problem> {
        let name = parse_name(name).ok_or_else(|| {
            Problem::bad_parameter(
                "`name` is a file's name of 1 to 200 characters, without `/`, `\\` and characters that control.",
            )
        })?;
        match length {
            Some(0) => return Err(empty()),
            Some(length) if length > MOST_BYTES => return Err(too_large()),
            Some(_) | None => {}
        }
        let sha256 = headers.get(SHA256).map(|value| parse_sha256(value.as_bytes())).transpose()?;
        Ok(Self { name, sha256 })
    }
}

fn parse_name(name: &str) -> Option<String> {
    let name = name.trim();
    let is_name = !matches!(name, "" | "." | "..")
        && name.chars().count() <= NAME_CHARACTERS
        && !name.chars().any(|character| is_control(character) || matches!(character, '/' | '\\'));
    is_name.then(|| name.to_owned())
}

/// Also what turns the writing's direction: a name must look like what it is.
fn is_control(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
        )
}

fn parse_sha256(value: &[u8]) -> Result<String, Problem> {
    let text = std::str::from_utf8(value).unwrap_or_default().trim();
    if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(Problem::bad_parameter("X-Content-SHA256 has 64 hexadecimal digits."));
    }
    Ok(text.to_ascii_lowercase())
}

/// 400: nothing was sent.
pub(super) fn empty() -> Problem {
    Problem::bad_parameter("The plugin is empty.")
}

/// 413: more than a plugin may have.
pub(super) fn too_large() -> Problem {
    Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "upload-too-large", "The upload is too large")
        .detail("A plugin has at most 50 MB. Nothing was stored.")
        .member("byteLimit", MOST_BYTES)
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderValue};

    use super::{Declared, MOST_BYTES};

    fn status(name: &str, length: Option<u64>, sha256: Option<&'static str>) -> Option<u16> {
        let mut headers = HeaderMap::new();
        if let Some(sha256) = sha256 {
            headers.insert(super::SHA256, HeaderValue::from_static(sha256));
        }
        Declared::parse(name, length, &headers).err().map(|problem| problem.status().as_u16())
    }

    #[test]
    fn names_are_file_names_that_look_like_what_they_are() {
        for name in ["a.jar", " a b.jar ", "\u{e9}.zip", "..a", &"x".repeat(200)] {
            assert_eq!(status(name, None, None), None, "{name:?}");
        }
        for name in [
            "",
            " ",
            ".",
            "..",
            "a/b",
            "..\\b",
            "a\nb",
            "a\0",
            "a\u{7f}",
            "a\u{202e}raj.exe",
            "a\u{2066}b",
            &"x".repeat(201),
        ] {
            assert_eq!(status(name, None, None), Some(400), "{name:?}");
        }
    }

    #[test]
    fn a_length_that_cannot_be_is_refused_before_anything_is_read() {
        for (length, expected) in [
            (0, Some(400)),
            (1, None),
            (MOST_BYTES, None),
            (MOST_BYTES + 1, Some(413)),
            (u64::MAX, Some(413)),
        ] {
            assert_eq!(status("a", Some(length), None), expected, "{length}");
        }
    }

    #[test]
    fn a_hash_has_its_form_or_is_refused() {
        assert_eq!(status("a", None, Some("")), Some(400));
        assert_eq!(status("a", None, Some("0123")), Some(400));
        let hash = "E3B0C44298FC1C149AFBF4C8996FB92427AE41E4649B934CA495991B7852B855";
        assert_eq!(status("a", None, Some(hash)), None);
    }
}
