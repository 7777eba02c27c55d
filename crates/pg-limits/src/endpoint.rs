use std::time::Duration;

/// The three bounds of one heavy endpoint, declared as a constant next to the code that serves it.
///
/// The time bound is both what stops the work and what the permit's lease is made of (bound plus
/// margin), so a lease cannot lapse under running work.
///
/// ```
/// use std::time::Duration;
/// use pg_limits::Endpoint;
///
/// const EXPORT: Endpoint = Endpoint::new("export", 1, Duration::from_secs(300)).rows(1_000_000);
/// assert_eq!(EXPORT.per_user(), 1);
/// assert_eq!(EXPORT.row_cap(), Some(1_000_000));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Endpoint {
    name: &'static str,
    per_user: u32,
    time_bound: Duration,
    row_cap: Option<u64>,
    byte_cap: Option<u64>,
}

impl Endpoint {
    /// Declares an endpoint: its name, how many requests one user may have under way on all
    /// replicas together (zero refuses everything), and how long one may run.
    ///
    /// # Panics
    ///
    /// In a constant, so at compile time: when `name` is empty or `installation`, the name of the
    /// scope that all endpoints share.
    pub const fn new(name: &'static str, per_user: u32, time_bound: Duration) -> Self {
        assert!(
            !(name.is_empty() || matches!(name.as_bytes(), b"installation")),
            "an endpoint needs a name of its own, and `installation` is taken"
        );
        Self { name, per_user, time_bound, row_cap: None, byte_cap: None }
    }

    /// Adds the most rows that one request may return.
    #[must_use]
    pub const fn rows(mut self, row_cap: u64) -> Self {
        self.row_cap = Some(row_cap);
        self
    }

    /// Adds the most bytes that one request may return, or hold at a time.
    #[must_use]
    pub const fn bytes(mut self, byte_cap: u64) -> Self {
        self.byte_cap = Some(byte_cap);
        self
    }

    /// The name that refusals, metrics and settings use.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// The cap per user that the code declares; the one in force may have been set at run time.
    pub const fn per_user(&self) -> u32 {
        self.per_user
    }

    /// How long the work under a permit may run.
    pub const fn time_bound(&self) -> Duration {
        self.time_bound
    }

    /// The most rows of one request, where the endpoint declares it.
    pub const fn row_cap(&self) -> Option<u64> {
        self.row_cap
    }

    /// The most bytes of one request, where the endpoint declares it.
    pub const fn byte_cap(&self) -> Option<u64> {
        self.byte_cap
    }
}
