//! How much CPU time all kernel threads of a process may take, in windows (Paper 1, §3.4, last
//! paragraph).
//!
//! A process that always runs at a high priority would keep all others from the CPU. The monitor
//! therefore adds up the CPU time that the process has used. If that exceeds its share of a window,
//! all virtual processors yield their CPUs for the rest of the window. The excess counts against
//! the next windows. So the share holds on average, however late a virtual processor stops.

/// The length of a window.
const WINDOW_NS: u64 = 100_000_000;
/// The most windows for which an excess counts against a process. After them it runs again in any
/// case.
const DEBT_WINDOWS_MAX: u64 = 10;

/// How long a runtime yields its CPUs, how much CPU time it may use, and how it treats a virtual
/// processor that does not answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limits {
    /// The longest time for which a virtual processor yields its CPU at once.
    pub(crate) cpu_yield_max_ns: u64,
    /// The CPU time limit, in percent of one CPU.
    pub(crate) cpu_percent_max: Option<u32>,
    /// The action against a virtual processor that no longer answers.
    pub(crate) on_unanswered: super::OnUnanswered,
}

/// The CPU time account of one process. Used by the monitor.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Account {
    window_end_ns: u64,
    /// The CPU time that may have been used by the end of this window.
    allowed_ns: u64,
}

impl Account {
    /// Until when the process must stop, if it has used `used_ns` by `now_ns`; `None` if it may
    /// continue.
    pub(crate) fn stop_until(&mut self, now_ns: u64, used_ns: u64, percent: u32) -> Option<u64> {
        let share_ns = WINDOW_NS / 100 * u64::from(percent);
        if now_ns >= self.window_end_ns {
            self.window_end_ns = now_ns + WINDOW_NS;
            // Unused time is lost; excess time is owed.
            let owed_ns = used_ns.saturating_sub(self.allowed_ns).min(DEBT_WINDOWS_MAX * share_ns);
            let owed_ns = if self.allowed_ns == 0 { 0 } else { owed_ns };
            self.allowed_ns = (used_ns + share_ns).saturating_sub(owed_ns);
        }
        (used_ns >= self.allowed_ns).then_some(self.window_end_ns)
    }
}

#[cfg(test)]
mod tests;
