//! How long a peer has been silent.

use core::time::Duration;

/// How long nothing came from a peer while this node listened.
#[derive(Debug, Default)]
pub(super) struct Silence {
    lasted: Duration,
    is_broken: bool,
}

impl Silence {
    /// Something has come.
    pub(super) fn break_off(&mut self) {
        self.is_broken = true;
    }

    /// Counts the time since the last call, and returns how long the silence has lasted.
    ///
    /// No more than `most` is counted: calls that lie farther apart mean that this node did not run
    /// or was busy, which says nothing of the peer.
    pub(super) fn lasts(&mut self, passed: Duration, most: Duration) -> Duration {
        let is_broken = core::mem::take(&mut self.is_broken);
        self.lasted = if is_broken { Duration::ZERO } else { self.lasted + passed.min(most) };
        self.lasted
    }
}
