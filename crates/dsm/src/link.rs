//! One end of a connection over a network that loses, repeats and reorders frames. Each payload
//! arrives once and in order, or the peer is lost.
//!
//! Frames are numbered, and each frame tells which number its sender expects next. At most `window`
//! frames are unconfirmed, which bounds the buffers of both ends. An end without payload still
//! sends a heartbeat, so silence means that the peer is dead. (Paper 3, §4: acknowledgements bound
//! the flow, and a missing one is an error.)

use core::fmt;
use std::collections::{BTreeMap, VecDeque};

/// Parameters of a link, in ticks of its driver.
#[derive(Debug, Clone, Copy)]
pub struct LinkSettings {
    /// Unconfirmed frames, at most.
    pub window: u64,
    /// Ticks until an unconfirmed frame is sent again, and between heartbeats.
    pub resend_after: u64,
    /// Ticks of silence after which the peer is dead; several times `resend_after`.
    pub deadline: u64,
}

/// One unit of transfer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame<P> {
    /// A numbered payload; `None` in a heartbeat.
    pub payload: Option<(u64, P)>,
    /// The number that the sender expects next.
    pub expects: u64,
}

/// The peer was silent for longer than the deadline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lost;

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the peer did not answer in time")
    }
}

impl core::error::Error for Lost {}

/// One end of a link.
#[derive(Debug)]
pub struct Link<P> {
    settings: LinkSettings,
    /// Payloads that are unconfirmed or unsent, from number `confirmed` on, each with the tick of
    /// its last sending.
    outgoing: VecDeque<(P, Option<u64>)>,
    confirmed: u64,
    expected: u64,
    early: BTreeMap<u64, P>,
    last_received: u64,
    spoke: Option<u64>,
    owes_answer: bool,
}

impl<P: Clone> Link<P> {
    /// One end at tick `now`.
    #[must_use]
    pub fn new(settings: LinkSettings, now: u64) -> Self {
        Self {
            settings,
            outgoing: VecDeque::new(),
            confirmed: 0,
            expected: 0,
            early: BTreeMap::new(),
            last_received: now,
            spoke: None,
            owes_answer: false,
        }
    }

    /// Queues a payload. [`Self::poll`] sends it as the window permits.
    pub fn send(&mut self, payload: P) {
        self.outgoing.push_back((payload, None));
    }

    /// The frames to send now.
    ///
    /// # Errors
    /// [`Lost`].
    pub fn poll(&mut self, now: u64) -> Result<Vec<Frame<P>>, Lost> {
        if now.saturating_sub(self.last_received) > self.settings.deadline {
            return Err(Lost);
        }
        let LinkSettings { window, resend_after, .. } = self.settings;
        let expects = self.expected;
        let mut frames = Vec::new();
        for (place, (payload, sent)) in self.outgoing.iter_mut().enumerate().take(window as usize) {
            if sent.is_none_or(|tick| now - tick >= resend_after) {
                *sent = Some(now);
                let payload = Some((self.confirmed + place as u64, payload.clone()));
                frames.push(Frame { payload, expects });
            }
        }
        let silent = self.spoke.is_none_or(|tick| now - tick >= resend_after);
        if frames.is_empty() && (self.owes_answer || silent) {
            frames.push(Frame { payload: None, expects });
        }
        if !frames.is_empty() {
            (self.spoke, self.owes_answer) = (Some(now), false);
        }
        Ok(frames)
    }

    /// Accepts a frame. Returns the payloads that are complete, in the order of sending.
    pub fn receive(&mut self, frame: Frame<P>, now: u64) -> Vec<P> {
        self.last_received = now;
        // A frame that was not sent cannot be confirmed, whatever the peer claims.
        let sent = self.outgoing.iter().take_while(|(_, sent)| sent.is_some()).count() as u64;
        let confirmed = frame.expects.saturating_sub(self.confirmed).min(sent);
        self.outgoing.drain(..confirmed as usize);
        self.confirmed += confirmed;
        let Some((number, payload)) = frame.payload else { return Vec::new() };
        self.owes_answer = true;
        if (self.expected..self.expected + self.settings.window).contains(&number) {
            self.early.insert(number, payload);
        }
        let mut complete = Vec::new();
        while let Some(payload) = self.early.remove(&self.expected) {
            self.expected += 1;
            complete.push(payload);
        }
        complete
    }
}
