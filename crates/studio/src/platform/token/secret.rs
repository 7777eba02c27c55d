//! The secret of a token, as its holder sends it.

use std::fmt;

use http::{HeaderMap, HeaderValue, StatusCode, header};
use rand::RngCore as _;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;
use uuid::Uuid;

use super::TokenId;
use crate::platform::problem::Problem;

const PREFIX: &str = "studio_";
const ID_DIGITS: usize = 32;
const RANDOM_DIGITS: usize = 64;
const LENGTH: usize = PREFIX.len() + ID_DIGITS + 1 + RANDOM_DIGITS;

/// `studio_<id>_<256 random bits>`, both in hexadecimal. Whoever finds one in a log knows what it is and which token
/// to revoke; only its hash is kept.
#[derive(Clone)]
pub struct TokenSecret {
    id: TokenId,
    text: String,
}

impl fmt::Debug for TokenSecret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("TokenSecret").field("id", &self.id).finish_non_exhaustive()
    }
}

impl TokenSecret {
    /// A new secret of that token.
    pub fn random(id: TokenId) -> Self {
        use fmt::Write as _;
        let mut bytes = [0_u8; RANDOM_DIGITS / 2];
        rand::rng().fill_bytes(&mut bytes);
        let mut text = format!("{PREFIX}{}_", id.0.simple());
        for byte in bytes {
            // Writing to a String does not fail.
            write!(text, "{byte:02x}").ok();
        }
        Self { id, text }
    }

    /// The secret in a text; nothing unless it has exactly the form of one.
    pub fn parse(text: &str) -> Option<Self> {
        if text.len() != LENGTH {
            return None;
        }
        let (id, random) = text.strip_prefix(PREFIX)?.split_once('_')?;
        let is_hexadecimal = |text: &str, digits: usize| {
            text.len() == digits
                && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        };
        if !is_hexadecimal(id, ID_DIGITS) || !is_hexadecimal(random, RANDOM_DIGITS) {
            return None;
        }
        Some(Self { id: TokenId(Uuid::try_parse(id).ok()?), text: text.to_owned() })
    }

    /// The secret that a request brings in `Authorization: Bearer`; nothing when it brings none. Another scheme is
    /// somebody else's, such as a proxy's own sign-in.
    ///
    /// # Errors
    /// The 401 problem of a header that means a token and is none.
    pub fn of(headers: &HeaderMap) -> Result<Option<Self>, Problem> {
        let mut bearers = headers.get_all(header::AUTHORIZATION).iter().filter_map(credentials);
        let Some(text) = bearers.next() else { return Ok(None) };
        // Two would leave open which of them counts.
        if bearers.next().is_some() {
            return Err(invalid());
        }
        std::str::from_utf8(text).ok().and_then(Self::parse).map(Some).ok_or_else(invalid)
    }

    /// The token whose secret this claims to be.
    pub fn id(&self) -> TokenId {
        self.id
    }

    /// The text, to be shown to its owner once.
    pub fn expose(&self) -> &str {
        &self.text
    }

    /// What is kept of it. A slow hash is for what people think of; 256 random bits are not guessed.
    pub fn hash(&self) -> Vec<u8> {
        Sha256::digest(self.text.as_bytes()).to_vec()
    }

    /// Whether one of the hashes is this secret's, in a time that tells nothing of how much of it fits.
    pub(super) fn has_hash_among(&self, hashes: &[&[u8]]) -> bool {
        let own = self.hash();
        let fits = hashes
            .iter()
            .fold(subtle::Choice::from(0), |fits, hash| fits | own.as_slice().ct_eq(hash));
        fits.into()
    }
}

/// What follows `Bearer` in a header; nothing under another scheme.
fn credentials(value: &HeaderValue) -> Option<&[u8]> {
    const SCHEME: &[u8] = b"bearer";
    let (scheme, rest) = value.as_bytes().split_at_checked(SCHEME.len())?;
    let is_bearer = scheme.eq_ignore_ascii_case(SCHEME)
        && rest.first().is_none_or(|next| matches!(next, b' ' | b'\t'));
    is_bearer.then(|| rest.trim_ascii())
}

/// 401: the token is unknown, expired, revoked, or no token at all; which of these is not said.
pub(crate) fn invalid() -> Problem {
    Problem::new(StatusCode::UNAUTHORIZED, "invalid-token", "The token is not valid").header(
        header::WWW_AUTHENTICATE,
        HeaderValue::from_static("Bearer error=\"invalid_token\""),
    )
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderValue, header};
    use proptest::prelude::*;
    use uuid::Uuid;

    use super::{TokenId, TokenSecret};

    fn headers(values: &[&[u8]]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(header::AUTHORIZATION, HeaderValue::from_bytes(value).unwrap());
        }
        headers
    }

    #[test]
    fn a_secret_is_read_back_and_fits_its_own_hash_only() {
        let (one, other) = (Uuid::now_v7(), Uuid::now_v7());
        let (one, other) = (TokenSecret::random(TokenId(one)), TokenSecret::random(TokenId(other)));
        let read = TokenSecret::parse(one.expose()).unwrap();
        assert_eq!(read.id(), one.id());
        assert!(read.has_hash_among(&[&other.hash(), &one.hash()]));
        assert!(!read.has_hash_among(&[&other.hash()]));
        assert!(!read.has_hash_among(&[]));
        assert!(!format!("{one:?}").contains(one.expose().rsplit('_').next().unwrap()));
    }

    #[test]
    fn the_scheme_is_told_from_others_whatever_its_case() {
        let secret = TokenSecret::random(TokenId(Uuid::now_v7()));
        for scheme in ["Bearer ", "bearer ", "BEARER\t", "Bearer   "] {
            let value = format!("{scheme}{}", secret.expose());
            assert!(TokenSecret::of(&headers(&[value.as_bytes()])).unwrap().is_some());
        }
        for other in [b"Basic YTpi".as_slice(), b"Bearers x", b"", b"Bear", b"Negotiate"] {
            assert!(TokenSecret::of(&headers(&[other])).unwrap().is_none());
        }
        let own = format!("Bearer {}", secret.expose());
        let upper = own.to_uppercase();
        for wrong in [b"Bearer".as_slice(), b"Bearer ", b"bearer \xff\xfe", upper.as_bytes()] {
            assert_eq!(TokenSecret::of(&headers(&[wrong])).unwrap_err().status(), 401);
        }
        let twice = headers(&[own.as_bytes(), own.as_bytes()]);
        assert_eq!(TokenSecret::of(&twice).unwrap_err().status(), 401);
    }

    proptest! {
        #[test]
        fn no_header_makes_the_parser_panic(value in prop::collection::vec(32_u8..=255, 0..300)) {
            if let Ok(value) = HeaderValue::from_bytes(&value) {
                let mut headers = HeaderMap::new();
                headers.insert(header::AUTHORIZATION, value);
                TokenSecret::of(&headers).ok();
            }
        }

        #[test]
        fn no_text_makes_the_parser_panic(text in "studio_\\PC{0,120}") {
            TokenSecret::parse(&text);
        }
    }
}
