//! Counting in one window.

use std::time::Duration;

use crate::enter::{Admitted, Entry};
use crate::error::LimitsError;
use crate::limits::Limits;
use crate::window::{LimitReached, Window, WindowState};

/// What a count came to. A refusal is an answer, not an error.
#[derive(Debug)]
#[must_use = "what is refused must not be done"]
pub enum Count {
    /// It fitted, and is counted.
    Counted(Counted),
    /// The window is full. Nothing was counted.
    Full(LimitReached),
}

/// One count in a window.
#[derive(Debug)]
pub struct Counted {
    admitted: Admitted,
    state: WindowState,
}

impl Counted {
    /// The window as the count left it.
    pub fn window(&self) -> &WindowState {
        &self.state
    }

    /// In shadow mode: the limit that would have refused it.
    pub fn would_have_been_refused(&self) -> Option<&LimitReached> {
        self.admitted.would_have_been_refused()
    }

    /// Takes the count back, for what failed through no fault of the key's owner. Does nothing when
    /// the window has ended meanwhile.
    ///
    /// # Errors
    ///
    /// When the limits' database cannot be asked: the count then stays until its window ends.
    ///
    /// # Cancel safety
    ///
    /// The count may or may not be taken back, never twice.
    pub async fn give_back(self) -> Result<(), LimitsError> {
        self.admitted.give_back().await
    }
}

impl Limits {
    /// Counts one thing in the window of a key, in one round trip, if it still fits.
    ///
    /// ```no_run
    /// # async fn run(limits: pg_limits::Limits) -> Result<(), Box<dyn std::error::Error>> {
    /// use std::time::Duration;
    /// use pg_limits::{Count, Window};
    ///
    /// const UPLOADS: Window = Window::new("upload_window", 5, Duration::from_secs(3600));
    ///
    /// match limits.count(&UPLOADS, "user-7").await? {
    ///     Count::Counted(counted) => println!("{} left this hour", counted.window().remaining),
    ///     Count::Full(limit) => println!("come back in {:?}", limit.retry_after),
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`LimitsError::Unavailable`] and [`LimitsError::Undecided`]: it may have been counted, and must
    /// not be done.
    ///
    /// # Cancel safety
    ///
    /// It may or may not be counted.
    pub async fn count(&self, window: &Window, key: &str) -> Result<Count, LimitsError> {
        Ok(match self.enter(None, &[(*window, key)], Duration::ZERO).await? {
            Entry::Refused(limit) => Count::Full(limit),
            Entry::Admitted(admitted) => Count::Counted(Counted {
                state: admitted.windows().first().copied().unwrap_or_else(|| window.state([0; 3])),
                admitted,
            }),
        })
    }
}
