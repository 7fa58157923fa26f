//! The loss of a peer that died, left too early or violated the protocol. All later messages are
//! ignored, all outstanding calls fail with an error that names the peer, and all other nodes are
//! notified.

use super::{Node, PendingCall};
use crate::address::NodeId;
use crate::interface::{Action, DsmError, ProtocolViolation, Subject};
use crate::message::Message;

/// A peer that is lost, and why.
#[derive(Debug, Clone, Copy)]
pub(super) struct Loss {
    pub(super) peer: NodeId,
    pub(super) end: End,
}

/// Why a peer is lost.
#[derive(Debug, Clone, Copy)]
pub(super) enum End {
    Dead,
    Left,
    Broke(ProtocolViolation),
}

impl Loss {
    pub(super) fn of(self, subject: Subject) -> DsmError {
        match self.end {
            End::Dead => DsmError::PeerLost(self.peer, subject),
            End::Left => DsmError::PeerLeft(self.peer, subject),
            End::Broke(breach) => DsmError::PeerBroke(self.peer, breach, subject),
        }
    }
}

impl Node {
    /// Why `subject` is unavailable, or `None` if it is available. It is unavailable once any peer
    /// is lost, or once a peer that it needs has left.
    #[must_use]
    pub fn lost(&self, subject: Subject) -> Option<DsmError> {
        let left = || self.needed(subject).map(|peer| DsmError::PeerLeft(peer, subject));
        self.lost.map(|lost| lost.of(subject)).or_else(left)
    }

    pub(super) fn lose(&mut self, loss: Loss) {
        // After the last barrier no peer is needed, and the others find out themselves.
        if self.lost.is_some() || self.ended {
            return;
        }
        self.lost = Some(loss);
        // All later messages are ignored.
        drop(self.early.take());
        self.begun.clear();
        let notice = match loss.end {
            End::Left => Message::Stranded(loss.peer),
            End::Dead | End::Broke(_) => Message::Lost(loss.peer),
        };
        for other in self.others().filter(|other| *other != loss.peer) {
            self.send(other, notice.clone());
        }
        self.granted.clear();
        self.founding.take().into_iter().for_each(|plan| self.forget(plan));
        self.give_up_ahead(|_| true);
        for (thread, PendingCall { call, .. }) in core::mem::take(&mut self.waiting) {
            self.actions.push(Action::Return(thread, Err(loss.of(call.subject()))));
        }
    }
}
