//! How much an address space may take: the CPU time of all its kernel threads, in windows (Paper 1, §3.4, last paragraph).
//!
//! Whoever runs at a high priority all the time would keep everybody else from the CPU. The monitor therefore adds up what the process
//! has used; where that exceeds its share of a window, all virtual processors stand aside for the rest of it. What was used beyond the
//! share counts against the next windows, so the share holds on average however late a virtual processor stops.

/// The length of a window.
const WINDOW_NS: u64 = 100_000_000;
/// Most of what was used too much that is held against a process: it runs again after some windows, whatever happened.
const DEBT_WINDOWS_MAX: u64 = 10;

/// What is settled for a runtime about its dealings with others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limits {
    /// How long a virtual processor stands aside for other processes at a time.
    pub(crate) aside_max_ns: u64,
    /// Most CPU time, in percent of one CPU.
    pub(crate) cpu_percent_max: Option<u32>,
    /// What is done about a virtual processor that no longer answers.
    pub(crate) on_unanswered: super::OnUnanswered,
}

/// The account of one process. The monitor's.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Account {
    window_end_ns: u64,
    /// What may have been used by the end of this window.
    allowed_ns: u64,
}

impl Account {
    /// Until when the process has to stop, having used `used_ns` by `now_ns`; `None` while it may go on.
    pub(crate) fn stop_until(&mut self, now_ns: u64, used_ns: u64, percent: u32) -> Option<u64> {
        let share_ns = WINDOW_NS / 100 * u64::from(percent);
        if now_ns >= self.window_end_ns {
            self.window_end_ns = now_ns + WINDOW_NS;
            // What was not used is lost, what was used too much is owed.
            let owed_ns = used_ns.saturating_sub(self.allowed_ns).min(DEBT_WINDOWS_MAX * share_ns);
            let owed_ns = if self.allowed_ns == 0 { 0 } else { owed_ns };
            self.allowed_ns = (used_ns + share_ns).saturating_sub(owed_ns);
        }
        (used_ns >= self.allowed_ns).then_some(self.window_end_ns)
    }
}

#[cfg(test)]
mod tests;
