//! One channel: its buffer, the waiters on either side, and the number of ends.
//!
//! **Invariant:** receivers wait only while the buffer is empty, and no sender waits except as
//! another arm of the same `select`. Senders wait only while the buffer is full. So if a receiver
//! waits, a message can go directly into that receiver's slot, and the order is right without
//! reading the buffer.
#![expect(unsafe_code, reason = "messages are copied into slots on other microprocesses' stacks")]

use core::{
    mem::{self, MaybeUninit},
    time::Duration,
};
use std::sync::mpsc::{RecvTimeoutError, TryRecvError, TrySendError};

use kyocho_sys::prim::cell::UnsafeCell;

use super::{
    SendTimeoutError,
    buffer::{Block, Buffer, Rejected},
};
use crate::processor::record::{Kind, Reason};
use crate::processor::vp::Masked;
use crate::schedule::guarded::{Deadline, Guard, Guarded};
use crate::schedule::kill_point;
use crate::wait::sync::{
    wait::{Claimed, Episode, Outcome, Waiter, wait},
    wait_queue::WaitQueue,
};

/// A channel, shared by its ends.
pub(crate) struct Shared<T> {
    state: Guarded<State<T>>,
}

struct State<T> {
    buffer: Buffer<T>,
    senders: Side,
    receivers: Side,
    /// The channel accepts no more messages: it is closed, or all receivers are dropped.
    shut: bool,
}

/// One side of a channel.
struct Side {
    /// The number of ends; at 0 the channel is disconnected for the other side.
    ends: usize,
    waiters: WaitQueue,
}

impl Side {
    const fn new() -> Self {
        Self { ends: 1, waiters: WaitQueue::new() }
    }

    /// Whether there is a waiter that is not an arm of `episode`.
    fn waits_apart_from(&self, episode: &Episode) -> bool {
        self.waiters.iter().any(|waiter| !waiter.is_arm_of(episode))
    }

    /// Ends the waits on this side, because the other side is dropped or the channel is closed.
    fn disconnect(&mut self, vp: Masked<'_>) {
        while let Some(waiter) = self.waiters.pop() {
            waiter.wake(vp, Outcome::Disconnected);
        }
    }
}

/// The outcome of offering a message to a channel.
enum Offer<T> {
    Taken,
    Disconnected(T),
    Rejected(Rejected<T>),
}

/// The outcome of taking a message from a channel.
enum Take<T> {
    Message(T),
    Empty,
    Disconnected,
}

impl<T> State<T> {
    #[inline]
    fn offer(&mut self, vp: Masked<'_>, message: T) -> Offer<T> {
        if let Some(receiver) = self.receivers.waiters.pop() {
            put(&receiver, message);
            receiver.wake(vp, Outcome::Granted);
            return Offer::Taken;
        }
        if self.shut {
            return Offer::Disconnected(message);
        }
        match self.buffer.push(message) {
            Ok(()) => Offer::Taken,
            Err(rejected) => Offer::Rejected(rejected),
        }
    }

    #[inline]
    fn take(&mut self, vp: Masked<'_>, drained: &mut Option<Box<Block<T>>>) -> Take<T> {
        let first = self.buffer.pop(drained);
        let Some(sender) = self.senders.waiters.pop() else {
            return match first {
                Some(message) => Take::Message(message),
                None if self.senders.ends == 0 || self.shut => Take::Disconnected,
                None => Take::Empty,
            };
        };
        let message = get(&sender);
        sender.wake(vp, Outcome::Granted);
        match first {
            None => Take::Message(message),
            Some(first) => {
                // Into the room just made. Only a bounded channel has both waiting senders and a
                // buffer.
                let pushed = self.buffer.push(message);
                debug_assert!(pushed.is_ok(), "there is room for the waiting message");
                Take::Message(first)
            }
        }
    }
}

/// Moves `message` into a waiting receiver's slot.
fn put<T>(receiver: &Claimed, message: T) {
    // SAFETY: a receiver waits with an empty slot for a `T`, and reads it only after it was woken.
    unsafe { receiver.slot::<T>().write(message) };
}

/// Moves the message out of a waiting sender's slot.
fn get<T>(sender: &Claimed) -> T {
    // SAFETY: a sender waits with a full slot. It counts as empty once the sender is woken as
    // granted.
    unsafe { sender.slot::<T>().read() }
}

impl<T> Shared<T> {
    pub(super) fn new(buffer: Buffer<T>) -> Self {
        let state = State { buffer, senders: Side::new(), receivers: Side::new(), shut: false };
        Self { state: Guarded::new(state) }
    }

    #[inline]
    pub(crate) fn try_send(&self, message: T) -> Result<(), TrySendError<T>> {
        match self.offer(message) {
            Offer::Taken => Ok(()),
            Offer::Disconnected(message) => Err(TrySendError::Disconnected(message)),
            Offer::Rejected(Rejected::Full(message) | Rejected::NeedsBlock(message)) => {
                Err(TrySendError::Full(message))
            }
        }
    }

    /// Offers `message`, and adds a block if the buffer needs one.
    #[inline]
    fn offer(&self, message: T) -> Offer<T> {
        let mut state = self.state.enter();
        let vp = state.vp();
        let offer = state.offer(vp, message);
        drop(state);
        match offer {
            Offer::Rejected(Rejected::NeedsBlock(message)) => self.offer_with_block(message),
            offer => offer,
        }
    }

    #[cold]
    fn offer_with_block(&self, mut message: T) -> Offer<T> {
        loop {
            let block = Block::new();
            let mut state = self.state.enter();
            let unused = state.buffer.add_block(block);
            let vp = state.vp();
            let offer = state.offer(vp, message);
            drop(state);
            drop(unused);
            match offer {
                // Others filled the block first. In each round of this loop they sent 32 messages.
                Offer::Rejected(Rejected::NeedsBlock(back)) => message = back,
                offer => return offer,
            }
        }
    }

    /// Sends `message`. Waits for room for at most `timeout`, or for ever if that is `None`.
    #[inline]
    pub(crate) fn send(
        &self,
        message: T,
        timeout: Option<Duration>,
    ) -> Result<(), SendTimeoutError<T>> {
        let mut state = self.state.enter_at_point();
        let vp = state.vp();
        match state.offer(vp, message) {
            Offer::Taken => Ok(()),
            Offer::Disconnected(message) => Err(SendTimeoutError::Disconnected(message)),
            Offer::Rejected(Rejected::Full(message)) => self.wait_to_send(state, message, timeout),
            Offer::Rejected(Rejected::NeedsBlock(message)) => {
                drop(state);
                match self.offer_with_block(message) {
                    Offer::Disconnected(message) => Err(SendTimeoutError::Disconnected(message)),
                    Offer::Taken | Offer::Rejected(_) => Ok(()),
                }
            }
        }
    }

    /// Inlined because of mispredicted returns after the switch, see `switch_away`.
    #[inline(always)]
    fn wait_to_send(
        &self,
        state: Guard<'_, State<T>>,
        message: T,
        timeout: Option<Duration>,
    ) -> Result<(), SendTimeoutError<T>> {
        let slot = UnsafeCell::new(MaybeUninit::new(message));
        let waiter = Waiter::with_slot(state.microprocess(), 0, slot.get().cast());
        let deadline = timeout.and_then(Deadline::after);
        let outcome = wait(
            &self.state,
            state,
            |state| &mut state.senders.waiters,
            &waiter,
            deadline,
            self.reason(Kind::Send),
        );
        // SAFETY: unless the send was granted, the message is still in the slot.
        let message = || unsafe { slot.into_inner().assume_init() };
        match outcome {
            Outcome::Granted => Ok(()),
            Outcome::Disconnected => Err(SendTimeoutError::Disconnected(message())),
            Outcome::TimedOut => {
                let message = message();
                kill_point::after_wait(deadline);
                Err(SendTimeoutError::Timeout(message))
            }
        }
    }

    #[inline]
    pub(crate) fn try_recv(&self) -> Result<T, TryRecvError> {
        let mut drained = None;
        let mut state = self.state.enter();
        let vp = state.vp();
        let taken = state.take(vp, &mut drained);
        drop(state);
        match taken {
            Take::Message(message) => Ok(message),
            Take::Empty => Err(TryRecvError::Empty),
            Take::Disconnected => Err(TryRecvError::Disconnected),
        }
    }

    /// Receives a message. Waits for one for at most `timeout`, or for ever if that is `None`.
    #[inline]
    pub(crate) fn recv(&self, timeout: Option<Duration>) -> Result<T, RecvTimeoutError> {
        let mut drained = None;
        let mut state = self.state.enter_at_point();
        let vp = state.vp();
        match state.take(vp, &mut drained) {
            Take::Message(message) => {
                // The guard is dropped first; a drained block is freed after that.
                drop(state);
                Ok(message)
            }
            Take::Disconnected => Err(RecvTimeoutError::Disconnected),
            Take::Empty => self.wait_to_receive(state, timeout),
        }
    }

    /// Inlined because of mispredicted returns after the switch, see `switch_away`.
    #[inline(always)]
    fn wait_to_receive(
        &self,
        state: Guard<'_, State<T>>,
        timeout: Option<Duration>,
    ) -> Result<T, RecvTimeoutError> {
        let slot = UnsafeCell::new(MaybeUninit::uninit());
        let waiter = Waiter::with_slot(state.microprocess(), 0, slot.get().cast());
        let deadline = timeout.and_then(Deadline::after);
        let outcome = wait(
            &self.state,
            state,
            |state| &mut state.receivers.waiters,
            &waiter,
            deadline,
            self.reason(Kind::Receive),
        );
        match outcome {
            // SAFETY: `Granted` means that a sender moved its message into the slot.
            Outcome::Granted => Ok(unsafe { slot.into_inner().assume_init() }),
            Outcome::Disconnected => Err(RecvTimeoutError::Disconnected),
            Outcome::TimedOut => {
                kill_point::after_wait(deadline);
                Err(RecvTimeoutError::Timeout)
            }
        }
    }

    /// The reason of a microprocess that waits for this channel.
    fn reason(&self, kind: Kind) -> Reason {
        Reason { kind, object: core::ptr::from_ref(self).addr() }
    }

    pub(super) fn len(&self) -> usize {
        self.state.enter().buffer.len()
    }

    pub(super) fn is_full(&self) -> bool {
        self.state.enter().buffer.is_full()
    }

    pub(super) fn capacity(&self) -> Option<usize> {
        self.state.enter().buffer.capacity()
    }

    pub(super) fn add_sender(&self) {
        self.state.enter().senders.ends += 1;
    }

    pub(super) fn add_receiver(&self) {
        self.state.enter().receivers.ends += 1;
    }

    /// Accepts no more messages: a waiting sender gets its message back, and receivers get what was
    /// sent.
    pub(super) fn close(&self) {
        let mut state = self.state.enter();
        state.shut = true;
        let vp = state.vp();
        state.senders.disconnect(vp);
        state.receivers.disconnect(vp);
    }

    /// Removes one sender; after the last one receivers no longer wait.
    pub(super) fn drop_sender(&self) {
        let mut state = self.state.enter();
        state.senders.ends -= 1;
        if state.senders.ends == 0 {
            let vp = state.vp();
            state.receivers.disconnect(vp);
        }
    }

    /// Removes one receiver; after the last one senders no longer wait, and unreceived messages are
    /// dropped.
    pub(super) fn drop_receiver(&self) {
        let mut state = self.state.enter();
        state.receivers.ends -= 1;
        if state.receivers.ends == 0 {
            state.shut = true;
            let vp = state.vp();
            state.senders.disconnect(vp);
            let unread = mem::replace(&mut state.buffer, Buffer::Rendezvous);
            drop(state);
            drop(unread);
        }
    }
}

/// Operations for `select`, which waits for a channel as one arm among others.
impl<T> Shared<T> {
    /// Queues `arm` among the receivers if receiving would wait; returns whether it did.
    ///
    /// # Safety
    /// `arm` and its episode stay where they are until `withdraw_receiver(arm)`.
    pub(crate) unsafe fn enlist_receiver(&self, arm: &Waiter, episode: &Episode) -> bool {
        let mut state = self.state.enter();
        let waits = state.buffer.len() == 0
            && state.senders.ends > 0
            && !state.shut
            && !state.senders.waits_apart_from(episode);
        if waits {
            // SAFETY: the caller's promise.
            unsafe { state.receivers.waiters.push(arm) };
        }
        waits
    }

    /// Queues `arm` among the senders if sending would wait; returns whether it did.
    ///
    /// # Safety
    /// `arm` and its episode stay where they are until `withdraw_sender(arm)`.
    pub(crate) unsafe fn enlist_sender(&self, arm: &Waiter, episode: &Episode) -> bool {
        let mut state = self.state.enter();
        let waits =
            state.buffer.is_full() && !state.shut && !state.receivers.waits_apart_from(episode);
        if waits {
            // SAFETY: the caller's promise.
            unsafe { state.senders.waiters.push(arm) };
        }
        waits
    }

    /// Removes `arm` from the receivers, if it still is among them.
    pub(crate) fn withdraw_receiver(&self, arm: &Waiter) {
        self.state.enter().receivers.waiters.remove(arm);
    }

    /// Gives `arm` another priority, if it still is among the receivers.
    pub(crate) fn rank_receiver(&self, arm: &Waiter, level: u8) {
        self.state.enter().receivers.waiters.rank_anew(arm, level);
    }

    /// Gives `arm` another priority, if it still is among the senders.
    pub(crate) fn rank_sender(&self, arm: &Waiter, level: u8) {
        self.state.enter().senders.waiters.rank_anew(arm, level);
    }

    /// Removes `arm` from the senders, if it still is among them.
    pub(crate) fn withdraw_sender(&self, arm: &Waiter) {
        self.state.enter().senders.waiters.remove(arm);
    }
}
