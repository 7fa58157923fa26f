//! Chooses between asking the kernel for written pages and letting writes be traps, by the costs of
//! recent intervals.
//!
//! Asking costs some 1.5 µs, plus a little for each page. A write that is a trap, and watching its
//! page again, costs about twice that. A program that acquires a lock for a few words ends
//! thousands of intervals in which no watched page was written. A program that writes to all of its
//! pages between two barriers would have as many traps.
//!
//! What the other way would have saved is added up. When the sum pays for a change, the way
//! changes. So a program is never far behind the better way, however often that changes.

/// Loss after which the way changes, in questions to the kernel.
const LOST_MAX: usize = 256;
/// Cost of a write that is a trap, in questions.
const TRAP: usize = 2;
/// Number of pages whose check adds the cost of one question to a question.
const PAGES: usize = 256;

/// What the current way has lost against the other one.
#[derive(Debug, Default)]
pub(super) struct Balance {
    lost: usize,
}

impl Balance {
    /// Counts an interval in which `written` of `pages` were written. Returns whether the way must
    /// change.
    pub(super) fn is_over(&mut self, traps: bool, written: usize, pages: usize) -> bool {
        let (asking, trapping) = (1 + pages / PAGES, TRAP * written);
        let (paid, saved) = if traps { (trapping, asking) } else { (asking, trapping) };
        self.lost = (self.lost + paid).saturating_sub(saved);
        let over = self.lost > LOST_MAX;
        if over {
            self.lost = 0;
        }
        over
    }
}

#[cfg(test)]
mod tests {
    use super::{Balance, LOST_MAX, PAGES, TRAP};

    /// Number of such intervals until the way changes, of 10,000.
    fn intervals(
        balance: &mut Balance,
        traps: bool,
        written: usize,
        pages: usize,
    ) -> Option<usize> {
        (1..=10_000).find(|_| balance.is_over(traps, written, pages))
    }

    #[test]
    fn asking_in_vain_for_long_changes_to_traps() {
        let mut balance = Balance::default();
        assert_eq!(intervals(&mut balance, false, 0, PAGES - 1), Some(LOST_MAX + 1));
        assert_eq!(
            intervals(&mut balance, false, 0, PAGES),
            Some(LOST_MAX / 2 + 1),
            "twice as dear"
        );
        assert_eq!(intervals(&mut balance, false, 1, 1), None, "a trap would cost more");
    }

    #[test]
    fn many_traps_change_to_asking() {
        let mut balance = Balance::default();
        assert_eq!(intervals(&mut balance, true, 0, 1), None);
        assert_eq!(intervals(&mut balance, true, LOST_MAX, 1), Some(1));
        assert_eq!(intervals(&mut balance, true, 1, 1), Some(LOST_MAX / (TRAP - 1) + 1));
    }

    #[test]
    fn what_was_saved_long_ago_is_not_counted() {
        let mut balance = Balance::default();
        (0..10_000).for_each(|_| assert!(!balance.is_over(false, 9, 1)));
        assert_eq!(intervals(&mut balance, false, 0, 1), Some(LOST_MAX + 1));
    }
}
