//! Whether those who come to the gates come one after another, or have each other's company.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// So many in a row must meet nobody before whoever comes counts as alone.
const IN_A_ROW: u32 = 64;

/// How many more must come and meet nobody. It steers speed only, so one that is lost in a race is no harm.
#[derive(Debug, Default)]
pub(crate) struct Company(AtomicU32);

impl Company {
    /// Notes one who came, and whether others were being served then; true when he counts as alone.
    pub(crate) fn is_alone(&self, meets_others: bool) -> bool {
        let missing = self.0.load(Relaxed);
        let left = if meets_others { IN_A_ROW } else { missing.saturating_sub(1) };
        // Written where it changes only: the steady states cost a read.
        if left != missing {
            self.0.store(left, Relaxed);
        }
        missing == 0 && !meets_others
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_met_others_is_alone_again_after_as_many_as_it_takes_met_nobody() {
        let company = Company::default();
        assert!(company.is_alone(false), "the first of a process is alone");
        assert!(!company.is_alone(true));
        for _ in 0..IN_A_ROW {
            assert!(!company.is_alone(false));
        }
        assert!(company.is_alone(false));
    }
}
