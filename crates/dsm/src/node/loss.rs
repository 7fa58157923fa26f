//! A peer that is lost, by death, by leaving or by breaking the protocol: nothing is taken from anybody since, whatever waits ends by an error that
//! names it, and all others are told.

use super::{Node, Waiting};
use crate::address::NodeId;
use crate::interface::{Action, Breach, DsmError, Subject};
use crate::message::Message;

/// Who is lost, and how.
#[derive(Debug, Clone, Copy)]
pub(super) struct Loss {
    pub(super) peer: NodeId,
    pub(super) end: End,
}

/// How a peer came to be lost.
#[derive(Debug, Clone, Copy)]
pub(super) enum End {
    Dead,
    Left,
    Broke(Breach),
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
    /// Why this cannot be had any more, if a peer is lost, or has left that it needs.
    #[must_use]
    pub fn lost(&self, subject: Subject) -> Option<DsmError> {
        let left = || self.needed(subject).map(|peer| DsmError::PeerLeft(peer, subject));
        self.lost.map(|lost| lost.of(subject)).or_else(left)
    }

    pub(super) fn lose(&mut self, loss: Loss) {
        // Behind the last barrier nobody is needed, and the others see for themselves.
        if self.lost.is_some() || self.ended {
            return;
        }
        self.lost = Some(loss);
        // Nothing is taken from anybody since.
        drop(self.early.take());
        self.begun.clear();
        let told = match loss.end {
            End::Left => Message::Stranded(loss.peer),
            End::Dead | End::Broke(_) => Message::Lost(loss.peer),
        };
        for other in self.others().filter(|other| *other != loss.peer) {
            self.send(other, told.clone());
        }
        self.granted.clear();
        self.founding.take().into_iter().for_each(|plan| self.forget(plan));
        self.give_up_ahead(|_| true);
        for (thread, Waiting { call, .. }) in core::mem::take(&mut self.waiting) {
            self.actions.push(Action::Return(thread, Err(loss.of(call.subject()))));
        }
    }
}
