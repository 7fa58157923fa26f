//! Priorities: 64 levels. A higher level is more urgent; microprocesses of one level run first
//! come, first served.

/// How urgent a microprocess is: 0 (least) to 63 (most).
///
/// A runnable microprocess always runs before every less urgent one of its virtual processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Priority(u8);

impl Priority {
    /// How many levels there are.
    pub const LEVELS: usize = 64;
    /// The default priority of a microprocess.
    pub const NORMAL: Self = Self(31);
    /// The least urgent level.
    pub const LOWEST: Self = Self(0);
    /// The most urgent level.
    pub const HIGHEST: Self = Self(63);

    /// The priority of this level, if there is one.
    #[must_use]
    pub const fn new(level: u8) -> Option<Self> {
        if (level as usize) < Self::LEVELS { Some(Self(level)) } else { None }
    }

    /// Its level.
    #[must_use]
    pub const fn level(self) -> u8 {
        self.0
    }
}

impl Default for Priority {
    fn default() -> Self {
        Self::NORMAL
    }
}
