use std::time::Duration;

/// A window of one key: so many counts in so long a time, on all replicas together.
///
/// A key's window begins with its first count and ends `length` later; the next count begins another.
/// So a client that spends a whole window at its very end may spend the next one at once: in any
/// stretch of one `length` there are at most twice `limit` counts, in any window at most `limit`.
///
/// ```
/// use std::time::Duration;
/// use pg_limits::Window;
///
/// const UPLOADS: Window = Window::new("upload_window", 5, Duration::from_secs(3600));
/// assert_eq!(UPLOADS.limit(), 5);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    name: &'static str,
    limit: u32,
    length: Duration,
    is_shadow: bool,
}

impl Window {
    /// Declares a window: its name, how many counts one key has in it (zero refuses everything), and
    /// its length, in whole milliseconds.
    ///
    /// # Panics
    ///
    /// In a constant, so at compile time: when `name` is empty or `length` zero.
    pub const fn new(name: &'static str, limit: u32, length: Duration) -> Self {
        assert!(!name.is_empty(), "a window needs a name");
        assert!(length.as_millis() > 0, "a window needs a length of at least a millisecond");
        Self { name, limit, length, is_shadow: false }
    }

    /// Counts, and tells what it would refuse, but refuses nothing.
    #[must_use]
    pub const fn shadow(mut self, is_shadow: bool) -> Self {
        self.is_shadow = is_shadow;
        self
    }

    /// The name that refusals, metrics and settings use.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// How many counts one key has in a window.
    pub const fn limit(&self) -> u32 {
        self.limit
    }

    /// How long a window lasts.
    pub const fn length(&self) -> Duration {
        self.length
    }

    /// Whether it only tells what it would refuse.
    pub const fn is_shadow(&self) -> bool {
        self.is_shadow
    }

    /// What a window is when it holds so many counts, and ends then.
    pub(crate) fn state(&self, [count, resets_ms, ends_us]: [i64; 3]) -> WindowState {
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        WindowState {
            name: self.name,
            limit: self.limit,
            length: self.length,
            remaining: self.limit.saturating_sub(count),
            resets_in: Duration::from_millis(u64::try_from(resets_ms).unwrap_or(0)),
            ends_us,
        }
    }
}

/// A key's window as its last count left it: what the header fields `RateLimit` and
/// `RateLimit-Policy` tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WindowState {
    /// The window's name.
    pub name: &'static str,
    /// How many counts it takes.
    pub limit: u32,
    /// How long it lasts.
    pub length: Duration,
    /// How many it still takes.
    pub remaining: u32,
    /// How long until it ends, by the database's clock.
    pub resets_in: Duration,
    /// Its end in microseconds since 1970: no other window of its key has it.
    pub(crate) ends_us: i64,
}

/// A limit that let nobody in. Nothing was counted for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LimitReached {
    /// The window's or the in-flight cap's name.
    pub name: &'static str,
    /// The limit that was reached.
    pub limit: u32,
    /// The window's length; none for an in-flight cap.
    pub window: Option<Duration>,
    /// When to come back: when the window ends; of an in-flight cap, a second.
    pub retry_after: Duration,
}

impl From<WindowState> for LimitReached {
    fn from(state: WindowState) -> Self {
        Self {
            name: state.name,
            limit: state.limit,
            window: Some(state.length),
            retry_after: state.resets_in,
        }
    }
}
