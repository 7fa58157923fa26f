//! Messages as bytes. Everything that arrives is decoded here, with bounds, and checked against the
//! layout before a node sees it.
//!
//! `postcard` writes numbers in as few bytes as they need. Updates travel as runs of neighbouring
//! words of one time, a page that was never written as an empty string. [`VERSION`] changes
//! whenever the encoding does; nodes of two versions refuse each other.

use core::fmt;

use crate::address::{LockId, NodeId, PageId};
use crate::layout::Layout;
use crate::message::{Message, Move};
use crate::update::Update;

/// The version of the protocol between nodes.
pub const VERSION: u16 = 4;

/// Lamport times, epochs and stamps are lower: counting never reaches this.
const COUNT_MAX: u64 = 1 << 62;

/// Why bytes are no valid message for this node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum InvalidMessage {
    /// They do not decode.
    Malformed,
    /// The message names a page, word, lock or node that the layout does not have.
    OutOfRange,
}

impl fmt::Display for InvalidMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Malformed => "it sent bytes that are no message",
            Self::OutOfRange => "it sent a message about something outside of the layout",
        })
    }
}

impl core::error::Error for InvalidMessage {}

/// Encodes a message and its sender's epoch.
///
/// # Panics
/// Never: every message can be encoded.
#[must_use]
pub fn encode(epoch: u64, message: &Message) -> Vec<u8> {
    postcard::to_stdvec(&(epoch, message)).expect("every message can be encoded")
}

/// Decodes the result of [`encode`].
///
/// The memory used is proportional to the length of `bytes`, whatever they claim.
///
/// # Errors
/// [`InvalidMessage`].
pub fn decode(bytes: &[u8], layout: &Layout) -> Result<(u64, Message), InvalidMessage> {
    let (letter, rest): ((u64, Message), _) =
        postcard::take_from_bytes(bytes).map_err(|_| InvalidMessage::Malformed)?;
    if !rest.is_empty() {
        return Err(InvalidMessage::Malformed);
    }
    check(letter.0, &letter.1, layout)?;
    Ok(letter)
}

/// Checks that the layout has everything that a message names.
///
/// # Errors
/// [`InvalidMessage::OutOfRange`].
pub fn check(epoch: u64, message: &Message, layout: &Layout) -> Result<(), InvalidMessage> {
    let known = counted(epoch) && Checker(layout).message(message);
    if known { Ok(()) } else { Err(InvalidMessage::OutOfRange) }
}

/// Whether a count is plausible.
fn counted(count: u64) -> bool {
    count < COUNT_MAX
}

/// Checks of values against a layout.
struct Checker<'a>(&'a Layout);

impl Checker<'_> {
    fn message(&self, message: &Message) -> bool {
        match message {
            Message::Acquire { lock, seen, .. } => self.lock(*lock) && counted(*seen),
            Message::Cancel(lock, _)
            | Message::Awaken(lock, _)
            | Message::Busy(lock, _)
            | Message::Signal { lock, .. } => self.lock(*lock),
            Message::Grant { lock, stamp, time, updates, .. } => {
                self.lock(*lock) && counted(*stamp) && counted(*time) && self.updates(updates)
            }
            Message::Release { lock, time, updates, seen, .. } => {
                self.lock(*lock) && counted(*time) && counted(*seen) && self.updates(updates)
            }
            Message::HandOn { lock, to, time, .. } => {
                self.lock(*lock) && self.node(*to) && counted(*time)
            }
            Message::Flush(updates) => self.updates(updates),
            Message::Arrive { time, written, held, moves, .. } => {
                counted(*time)
                    && written.iter().all(|page| self.page(*page))
                    && held.iter().all(|lock| self.lock(*lock))
                    && moves.iter().all(|asked| self.moved(*asked))
            }
            Message::Go { time, written, held, moves, .. } => {
                let writers = |nodes: &[NodeId]| nodes.iter().all(|node| self.node(*node));
                counted(*time)
                    && written.iter().all(|(page, nodes)| self.page(*page) && writers(nodes))
                    && held.iter().all(|(lock, node)| self.lock(*lock) && self.node(*node))
                    && moves.iter().all(|asked| self.moved(*asked))
            }
            Message::Master(page, contents) | Message::Page(page, contents) => {
                self.page(*page) && contents.len() == self.0.words_a_page as usize
            }
            Message::Fetch(page, _) => self.page(*page),
            Message::Lost(node) | Message::Stranded(node) => self.node(*node),
            Message::Region(plan, _) => plan.is_possible(self.0.nodes),
            Message::Refuse(why) => why.is_possible(self.0.nodes),
            Message::Left => true,
        }
    }

    fn updates(&self, updates: &[Update]) -> bool {
        let one_page = |one: &Update, next: &Update| one.address.page == next.address.page;
        let known =
            |update: &Update| update.address.word < self.0.words_a_page && counted(update.time);
        let mut of_pages = updates.chunk_by(one_page);
        of_pages.all(|of_page| self.page(of_page[0].address.page) && of_page.iter().all(known))
    }

    fn moved(&self, asked: Move) -> bool {
        match asked {
            Move::Lock(lock, to) => self.lock(lock) && self.node(to),
            Move::Page(page, to) => self.page(page) && self.node(to),
        }
    }

    fn page(&self, page: PageId) -> bool {
        self.0.regions.has(page)
    }

    fn lock(&self, lock: LockId) -> bool {
        lock.0 < self.0.locks
    }

    fn node(&self, node: NodeId) -> bool {
        node.0 < self.0.nodes
    }
}

#[cfg(test)]
mod tests;
