//! Mistakes that a protocol like this could make, made on its messages; the simulator must notice each.

use std::collections::BTreeMap;

use kyocho_dsm::{LockId, Message, NodeId, Update};

/// A mistake.
#[derive(Debug, Clone)]
pub(crate) enum Mutant {
    /// None.
    None,
    /// An acquirer claims to have seen one release more than it has.
    ForgottenStamp,
    /// What came with the last grant of a lock is applied again after what comes with this one.
    AppliedTwice(BTreeMap<(NodeId, LockId), Vec<Update>>),
    /// Locks that were moved are asked of their first manager.
    StaleManager,
    /// A node keeps one of its updates from the page's manager.
    ForgottenUpdate,
}

impl Mutant {
    pub(crate) fn change(
        &mut self,
        to: NodeId,
        mut message: Message,
        nodes: u16,
    ) -> (NodeId, Message) {
        match (self, &mut message) {
            (Self::ForgottenStamp, Message::Acquire { seen, .. }) => *seen += 1,
            (Self::AppliedTwice(last), Message::Grant { lock, updates, time, .. }) => {
                let fresh = updates.clone();
                let again = last.insert((to, *lock), fresh).unwrap_or_default();
                // As if times were not looked at.
                updates.extend(again.into_iter().map(|update| Update { time: *time, ..update }));
            }
            (Self::StaleManager, Message::Acquire { lock, .. } | Message::Release { lock, .. }) => {
                return (NodeId((lock.0 % u32::from(nodes)) as u16), message);
            }
            (Self::ForgottenUpdate, Message::Flush(updates)) => drop(updates.pop()),
            _ => {}
        }
        (to, message)
    }
}
