//! How long a peer has been silent.

use core::time::Duration;

/// For how long nothing has arrived from a peer, while this node was listening.
#[derive(Debug, Default)]
pub(super) struct Silence {
    lasted: Duration,
    is_broken: bool,
}

impl Silence {
    /// Something has arrived.
    pub(super) fn break_off(&mut self) {
        self.is_broken = true;
    }

    /// Adds the time since the last call. Returns how long the silence has lasted.
    ///
    /// At most `most` is added. If calls are farther apart, this node did not run or was busy,
    /// which tells nothing about the peer.
    pub(super) fn lasts(&mut self, passed: Duration, most: Duration) -> Duration {
        let is_broken = core::mem::take(&mut self.is_broken);
        self.lasted = if is_broken { Duration::ZERO } else { self.lasted + passed.min(most) };
        self.lasted
    }
}
