//! Messages and bytes exchanged with one peer.

use kyocho_sys::prim::atomic::unmodelled::{AtomicU64, Ordering};

use crate::transport::Traffic;

/// The counters of a peer. Each is exact; a reader may see one of a message's two counters before
/// the other.
#[derive(Debug, Default)]
pub(super) struct Counts {
    messages_sent: AtomicU64,
    bytes_sent: AtomicU64,
    messages_received: AtomicU64,
    bytes_received: AtomicU64,
}

impl Counts {
    /// Counts a message to the peer.
    pub(super) fn sent(&self, message: &[u8]) {
        self.messages_sent.fetch_add(1, Ordering::Relaxed);
        self.bytes_sent.fetch_add(message.len() as u64, Ordering::Relaxed);
    }

    /// Counts a message from the peer.
    pub(super) fn received(&self, message: &[u8]) {
        self.messages_received.fetch_add(1, Ordering::Relaxed);
        self.bytes_received.fetch_add(message.len() as u64, Ordering::Relaxed);
    }

    pub(super) fn read(&self) -> Traffic {
        Traffic {
            messages_sent: self.messages_sent.load(Ordering::Relaxed),
            bytes_sent: self.bytes_sent.load(Ordering::Relaxed),
            messages_received: self.messages_received.load(Ordering::Relaxed),
            bytes_received: self.bytes_received.load(Ordering::Relaxed),
        }
    }
}
