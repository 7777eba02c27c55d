//! The two forms of an export.

use bytes::{BufMut as _, BytesMut};
use serde::Deserialize;

use super::super::event::Event;

/// The form of a file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub(in super::super) enum Format {
    /// A record a line, after a line of names.
    Csv,
    /// A JSON object a line.
    #[default]
    Ndjson,
}

impl Format {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::Ndjson => "ndjson",
        }
    }

    pub(super) const fn content_type(self) -> &'static str {
        match self {
            Self::Csv => "text/csv; charset=utf-8; header=present",
            Self::Ndjson => "application/x-ndjson",
        }
    }

    pub(super) const fn disposition(self) -> &'static str {
        match self {
            Self::Csv => "attachment; filename=\"audit.csv\"",
            Self::Ndjson => "attachment; filename=\"audit.ndjson\"",
        }
    }

    /// What comes before the first event.
    pub(super) fn begin(self, out: &mut BytesMut) {
        if self == Self::Csv {
            out.put_slice(Event::CSV_HEADER);
        }
    }

    /// One event.
    pub(super) fn write(self, event: &Event<'_>, out: &mut BytesMut) {
        match self {
            Self::Csv => event.write_csv(out),
            Self::Ndjson => {
                event.write_json(out);
                out.put_u8(b'\n');
            }
        }
    }

    /// The mark that ends a file.
    pub(super) fn end(self, why: &str, rows: u64, out: &mut BytesMut) {
        let mark = match self {
            Self::Csv => format!("#END,{why},{rows}\r\n"),
            Self::Ndjson => format!("{{\"$end\":\"{why}\",\"rows\":{rows}}}\n"),
        };
        out.put_slice(mark.as_bytes());
    }
}
