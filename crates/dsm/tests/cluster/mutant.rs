//! Mistakes that an implementation of the protocol could make. They are applied to its messages,
//! and one to the runtime. The simulator must notice each.

use std::collections::BTreeMap;

use kyocho_dsm::{Layout, LockId, Message, NodeId, PageId, Update};

/// A mistake.
#[derive(Debug, Clone)]
pub(crate) enum Mutant {
    /// None.
    None,
    /// A requesting node claims to have seen one release more than it has.
    ForgottenStamp,
    /// The updates of the last grant of a lock are applied again after those of this grant.
    AppliedTwice(BTreeMap<(NodeId, LockId), Vec<Update>>),
    /// Locks that were moved are requested from their first manager.
    StaleManager,
    /// A node withholds one of its updates from the page's manager.
    ForgottenUpdate,
    /// A node adds the pages of a region after it has crossed the barrier, instead of before it
    /// arrives.
    LateRegion,
    /// The first page of a region is requested from the manager of the page before it.
    WrongBorder,
    /// A page that the host reclaimed is readmitted as if it had not been written.
    AdmittedAsClean,
}

impl Mutant {
    pub(crate) fn change(
        &mut self,
        to: NodeId,
        mut message: Message,
        layout: &Layout,
    ) -> (NodeId, Message) {
        match (self, &mut message) {
            (Self::ForgottenStamp, Message::Acquire { seen, .. }) => *seen += 1,
            (Self::AppliedTwice(last), Message::Grant { lock, updates, time, .. }) => {
                let fresh = updates.clone();
                let again = last.insert((to, *lock), fresh).unwrap_or_default();
                // As if times were ignored.
                updates.extend(again.into_iter().map(|update| Update { time: *time, ..update }));
            }
            (Self::StaleManager, Message::Acquire { lock, .. } | Message::Release { lock, .. }) => {
                return (NodeId((lock.0 % u32::from(layout.nodes)) as u16), message);
            }
            (Self::ForgottenUpdate, Message::Flush(updates)) => drop(updates.pop()),
            (Self::WrongBorder, Message::Fetch(page, _)) => {
                return (manager_before(layout, *page).unwrap_or(to), message);
            }
            _ => {}
        }
        (to, message)
    }
}

/// The manager of the page before one that starts a region.
fn manager_before(layout: &Layout, page: PageId) -> Option<NodeId> {
    let begins = page.0.checked_sub(1).is_some_and(|before| !layout.regions.has(PageId(before)));
    let before = layout.regions.iter().take_while(|(other, _)| *other < page).last();
    before.filter(|_| begins).map(|(_, manager)| manager)
}
