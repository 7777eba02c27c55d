//! How a cluster is asked for.

use std::path::PathBuf;

/// How a server is told to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopMode {
    /// Waits until every client has left.
    Smart,
    /// Ends the sessions, then shuts down cleanly.
    Fast,
    /// Quits at once, as in a crash; the next start recovers from the write-ahead log.
    Immediate,
}

/// Where a private cluster lives and how its server is set.
#[derive(Debug, Clone)]
pub struct ClusterOptions {
    pub(crate) folder: PathBuf,
    pub(crate) port: Option<u16>,
    pub(crate) settings: Vec<(String, String)>,
}

impl ClusterOptions {
    /// A cluster in `folder`, which is created when missing and must otherwise be empty or be
    /// one that this crate made.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into(), port: None, settings: Vec::new() }
    }

    /// Listens on this port of 127.0.0.1 instead of a free one.
    #[must_use]
    pub fn port(mut self, port: u16) -> Self {
        self.port = Some(port);
        self
    }

    /// Sets a server setting, as a line of `postgresql.conf` does; a later one wins.
    /// The value is quoted by this crate. It holds for this start: the next one states its own.
    #[must_use]
    pub fn setting(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.settings.push((name.into(), value.into()));
        self
    }
}
