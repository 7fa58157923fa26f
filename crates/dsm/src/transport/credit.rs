//! Flow control of one connection in both directions, without the socket: frames, messages cut into
//! pieces, credit.
//!
//! ```text
//!   [length: 4 bytes][kind: 1 byte][payload]   a frame; length counts kind and payload,
//!                                              at most FRAME_MAX
//! ```
//!
//! A sender starts with [`CREDIT`] bytes of credit, and each piece of a message costs its length.
//! The receiver returns credit for what it has read. So at most [`CREDIT`] bytes of one peer are
//! between a sender's queue and a receiver's message, whatever the network buffers. (Paper 3, §4:
//! update messages are cut into pieces that fit the socket's buffer, each acknowledged.)

use std::collections::VecDeque;

use crate::transport::FULL_BYTES;

/// Bytes of a frame without its length, at most.
pub(super) const FRAME_MAX: usize = 64 * 1024;
/// Bytes of pieces in transit, at most.
pub(super) const CREDIT: usize = 1024 * 1024;
const HEADER: usize = 4;
/// Credit is returned when this much is owed.
const GIVE_BACK: usize = CREDIT / 4;

const PIECE: u8 = 1;
const LAST_PIECE: u8 = 2;
const CREDITS: u8 = 3;
const ALIVE: u8 = 4;
const GOODBYE: u8 = 5;

/// What is to be sent to one peer.
#[derive(Debug)]
pub(super) struct Outgoing {
    /// Frames that can be sent now.
    ready: VecDeque<u8>,
    /// Pieces that wait for credit.
    pieces: VecDeque<Vec<u8>>,
    pieces_bytes: usize,
    bytes_max: usize,
    credit: usize,
}

/// More bytes wait than the bound permits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Congested;

impl Outgoing {
    /// An empty queue, for at most `bytes_max` bytes of messages.
    pub(super) fn new(bytes_max: usize) -> Self {
        let (ready, pieces) = (VecDeque::new(), VecDeque::new());
        Self { ready, pieces, pieces_bytes: 0, bytes_max, credit: CREDIT }
    }

    /// Sets the bound on bytes of messages.
    pub(super) fn bound(&mut self, bytes_max: usize) {
        self.bytes_max = bytes_max;
    }

    /// Whether the program must stop sending for now.
    pub(super) fn is_full(&self) -> bool {
        self.waiting() > FULL_BYTES.min(self.bytes_max / 2)
    }

    fn waiting(&self) -> usize {
        self.pieces_bytes + self.ready.len()
    }

    /// Queues a message.
    pub(super) fn message(&mut self, message: &[u8]) -> Result<(), Congested> {
        if self.waiting() + message.len() > self.bytes_max {
            return Err(Congested);
        }
        let mut rest = message;
        loop {
            let (piece, more) = rest.split_at(rest.len().min(FRAME_MAX - 1));
            rest = more;
            let kind = if rest.is_empty() { LAST_PIECE } else { PIECE };
            self.pieces.push_back(frame(kind, piece));
            self.pieces_bytes += piece.len() + HEADER + 1;
            if rest.is_empty() {
                break;
            }
        }
        self.pay();
        Ok(())
    }

    /// The peer has returned credit.
    pub(super) fn credited(&mut self, bytes: usize) {
        self.credit = (self.credit + bytes).min(CREDIT);
        self.pay();
    }

    /// Returns credit to the peer.
    pub(super) fn give_credit(&mut self, bytes: usize) {
        self.ready.extend(frame(CREDITS, &(bytes as u32).to_le_bytes()));
    }

    /// Queues a heartbeat.
    pub(super) fn alive(&mut self) {
        self.ready.extend(frame(ALIVE, &[]));
    }

    /// Queues the last frame, after all messages.
    pub(super) fn goodbye(&mut self) {
        self.pieces.push_back(frame(GOODBYE, &[]));
        self.pieces_bytes += HEADER + 1;
        self.pay();
    }

    fn pay(&mut self) {
        while let Some(piece) = self.pieces.front().filter(|piece| piece.len() <= self.credit) {
            if piece[HEADER] != GOODBYE {
                self.credit -= piece.len();
            }
            self.pieces_bytes -= piece.len();
            let piece = self.pieces.pop_front().expect("the queue is not empty");
            self.ready.extend(piece);
        }
    }

    /// What can be sent now.
    pub(super) fn ready(&self) -> &[u8] {
        self.ready.as_slices().0
    }

    /// Removes bytes that were sent.
    pub(super) fn sent(&mut self, bytes: usize) {
        self.ready.drain(..bytes);
    }
}

fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() + 1) as u32;
    [&length.to_le_bytes()[..], &[kind], payload].concat()
}

/// What arrives from one peer.
#[derive(Debug)]
pub(super) struct Incoming {
    bytes: Vec<u8>,
    message: Vec<u8>,
    message_max: usize,
    owed: usize,
}

/// A complete unit of input.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Received {
    Message(Vec<u8>),
    Credit(usize),
    Goodbye,
}

/// The bytes violate the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Malformed;

impl Incoming {
    pub(super) fn new(message_max: usize) -> Self {
        Self { bytes: Vec::new(), message: Vec::new(), message_max, owed: 0 }
    }

    /// Sets the bound on bytes of a message.
    pub(super) fn bound(&mut self, message_max: usize) {
        self.message_max = message_max;
    }

    /// Parses bytes, and calls `each` with every complete unit.
    pub(super) fn take(
        &mut self,
        bytes: &[u8],
        mut each: impl FnMut(Received),
    ) -> Result<(), Malformed> {
        self.bytes.extend_from_slice(bytes);
        let mut at = 0;
        while let Some(header) = self.bytes[at..].first_chunk::<HEADER>() {
            let length = u32::from_le_bytes(*header) as usize;
            if !(1..=FRAME_MAX).contains(&length) {
                return Err(Malformed);
            }
            let start = at + HEADER;
            let Some(frame) = self.bytes.get(start..start + length) else { break };
            let (kind, payload) = (frame[0], &frame[1..]);
            match (kind, payload.len()) {
                (PIECE | LAST_PIECE, bytes) if self.message.len() + bytes <= self.message_max => {
                    self.message.extend_from_slice(payload);
                    self.owed += HEADER + length;
                }
                (CREDITS, 4) => {
                    let bytes = payload.try_into().map_or(0, u32::from_le_bytes);
                    each(Received::Credit(bytes as usize));
                }
                (ALIVE, 0) => {}
                (GOODBYE, 0) => each(Received::Goodbye),
                _ => return Err(Malformed),
            }
            if kind == LAST_PIECE {
                each(Received::Message(core::mem::take(&mut self.message)));
            }
            at = start + length;
        }
        self.bytes.drain(..at);
        Ok(())
    }

    /// Credit to return now, if any.
    pub(super) fn owed(&mut self) -> Option<usize> {
        (self.owed >= GIVE_BACK).then(|| core::mem::take(&mut self.owed))
    }
}

#[cfg(test)]
mod tests;
