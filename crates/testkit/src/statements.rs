//! Reads along what a PostgreSQL client sends, to see which prepared statements it names.

/// A prepared statement that a client gave a name to, with its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedStatement {
    /// The name that the client chose.
    pub name: String,
    /// The SQL text.
    pub query: String,
}

/// Reads the frontend messages of one connection, in pieces of any size. Without TLS only.
#[derive(Debug, Default)]
pub(crate) struct FrontendMessages {
    phase: Phase,
    /// The beginning of a message that is not yet complete.
    kept: Vec<u8>,
    /// What remains of a message that is of no interest.
    skipped: usize,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Before the startup message, whose form has no type byte.
    #[default]
    Startup,
    Typed,
    /// Not this protocol.
    Opaque,
}

/// Request codes in place of the protocol version: TLS, GSSAPI.
const ENCRYPTION_REQUESTS: [u32; 2] = [80_877_103, 80_877_104];

impl FrontendMessages {
    /// Takes the next bytes, and answers the statements named by the messages they complete.
    pub(crate) fn read(&mut self, mut bytes: &[u8]) -> Vec<NamedStatement> {
        let mut named = Vec::new();
        while !bytes.is_empty() && self.phase != Phase::Opaque {
            if self.skipped > 0 {
                let skip = self.skipped.min(bytes.len());
                self.skipped -= skip;
                bytes = bytes.get(skip..).unwrap_or_default();
                continue;
            }
            let missing = self.wanted().saturating_sub(self.kept.len()).min(bytes.len());
            let (taken, rest) = bytes.split_at(missing);
            self.kept.extend_from_slice(taken);
            bytes = rest;
            if self.kept.len() == self.wanted() {
                named.extend(self.complete());
            }
        }
        named
    }

    /// How many bytes of the message must be kept: of most, only as many as tell its length.
    fn wanted(&self) -> usize {
        match (self.phase, self.kept.first()) {
            (Phase::Startup, _) => 8,
            (_, Some(b'P')) if self.kept.len() >= 5 => self.length(1) + 1,
            _ => 5,
        }
    }

    /// Takes what was kept, which is as much as wanted, and sets out for the next message.
    fn complete(&mut self) -> Option<NamedStatement> {
        let is_startup = self.phase == Phase::Startup;
        let length = self.length(usize::from(!is_startup));
        if length < 4 {
            self.phase = Phase::Opaque;
            return None;
        }
        let kept = std::mem::take(&mut self.kept);
        if is_startup {
            let code = kept.get(4..8).and_then(|code| code.try_into().ok()).map(u32::from_be_bytes);
            if !code.is_some_and(|code| ENCRYPTION_REQUESTS.contains(&code)) {
                self.phase = Phase::Typed;
            }
            self.skipped = length.saturating_sub(8);
            return None;
        }
        if kept.first() != Some(&b'P') {
            self.skipped = length - 4;
            return None;
        }
        let mut texts = kept.get(5..)?.split(|&byte| byte == 0);
        let mut text = || texts.next().map(|text| String::from_utf8_lossy(text).into_owned());
        let (name, query) = (text()?, text()?);
        (!name.is_empty()).then_some(NamedStatement { name, query })
    }

    /// The message's length field, which counts itself; it begins at `from`.
    fn length(&self, from: usize) -> usize {
        let field = self.kept.get(from..from + 4).and_then(|field| field.try_into().ok());
        field.map(u32::from_be_bytes).and_then(|length| length.try_into().ok()).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: u8, body: &[u8]) -> Vec<u8> {
        let mut message = vec![kind];
        message.extend(u32::try_from(body.len() + 4).unwrap().to_be_bytes());
        message.extend(body);
        message
    }

    #[test]
    fn named_statements_are_seen_however_the_bytes_are_cut() {
        let mut bytes = vec![0, 0, 0, 8];
        bytes.extend(80_877_103_u32.to_be_bytes());
        let startup = b"\0\x03\0\0user\0ann\0\0";
        bytes.extend(u32::try_from(startup.len() + 4).unwrap().to_be_bytes());
        bytes.extend(startup);
        bytes.extend(message(b'p', b"PP\0"));
        bytes.extend(message(b'P', b"\0select 'unnamed'\0\0\0"));
        bytes.extend(message(b'S', b""));
        bytes.extend(message(b'P', b"s7\0select 1\0\0\0"));
        bytes.extend(message(b'Q', b"P\0\0\0\x09s8\0a\0\0\0"));
        let expected = [NamedStatement { name: "s7".to_owned(), query: "select 1".to_owned() }];
        for size in 1..=bytes.len() {
            let mut messages = FrontendMessages::default();
            let seen: Vec<_> = bytes.chunks(size).flat_map(|chunk| messages.read(chunk)).collect();
            assert_eq!(seen, expected, "in pieces of {size}");
        }
    }

    #[test]
    fn bytes_of_another_protocol_are_let_pass() {
        let mut messages = FrontendMessages::default();
        assert_eq!(messages.read(&[0; 64]), []);
        assert_eq!(messages.read(&message(b'P', b"s7\0select 1\0\0\0")), []);
    }
}
