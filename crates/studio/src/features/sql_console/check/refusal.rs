//! Why a text does not run: a sentence that names the construct.

use std::fmt;

/// A text that the console does not run, with the construct named and a sentence for its author.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    construct: String,
    sentence: String,
}

impl Refusal {
    /// A construct that PostgreSQL knows and the console leaves out.
    pub(super) fn construct(construct: impl Into<String>) -> Self {
        let construct = construct.into();
        let sentence = format!(
            "{construct} is not allowed: the console runs one SELECT over the views of its catalogue."
        );
        Self { construct, sentence }
    }

    /// A refusal whose sentence says more than "not allowed".
    pub(super) fn because(construct: impl Into<String>, sentence: impl Into<String>) -> Self {
        Self { construct: construct.into(), sentence: sentence.into() }
    }

    /// The construct's name, such as `SELECT INTO` or `function pg_sleep`.
    pub fn name(&self) -> &str {
        &self.construct
    }

    /// A whole sentence, safe to show to the author of the text.
    pub fn sentence(&self) -> &str {
        &self.sentence
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence)
    }
}

impl std::error::Error for Refusal {}
