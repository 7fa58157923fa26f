//! A channel operation as an arm of a `select`.
#![expect(unsafe_code, reason = "other microprocesses write the arm's message through its waiter")]

use core::{cell::Cell, fmt, mem::MaybeUninit};
use std::sync::mpsc::{RecvError, SendError, TryRecvError, TrySendError};

use kyocho_sys::prim::cell::UnsafeCell;

use super::{Receiver, Sender, shared::Shared};
use crate::wait::select::Operation;
use crate::wait::sync::wait::{Episode, Outcome, Waiter};

/// The state of an arm, which says what its slot holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    /// Not done yet: a send's message is in the slot; a receive's slot is empty.
    Open,
    /// Done: a send's slot is empty; a receive's message is in the slot.
    Done,
    /// The other side of the channel is dropped, or the channel is closed. The slot is as in
    /// `Open`.
    Disconnected,
}

/// The common part of both kinds of arm.
struct Parts<'a, T> {
    shared: &'a Shared<T>,
    progress: Cell<Progress>,
    slot: UnsafeCell<MaybeUninit<T>>,
    /// The node in the channel's queue, while a `select` waits.
    waiter: UnsafeCell<Option<Waiter>>,
}

impl<'a, T> Parts<'a, T> {
    fn new(shared: &'a Shared<T>, slot: MaybeUninit<T>) -> Self {
        Self {
            shared,
            progress: Cell::new(Progress::Open),
            slot: UnsafeCell::new(slot),
            waiter: UnsafeCell::new(None),
        }
    }

    /// Whether the operation has ended.
    fn is_over(&self) -> bool {
        self.progress.get() != Progress::Open
    }

    /// Makes the node for the channel's queue.
    fn make_waiter(&self, episode: &Episode, index: u32) -> &Waiter {
        let waiter = Waiter::of_episode(index, self.slot.get().cast(), episode);
        // SAFETY: the node is in no queue now, since enlisting and withdrawing alternate. So no
        // other microprocess can reach the cell.
        let place = unsafe { &mut *self.waiter.get() };
        place.insert(waiter)
    }

    /// The node, if one was made since the last withdrawal.
    fn waiter(&self) -> Option<&Waiter> {
        // SAFETY: the option is written only by `make_waiter` and `note_outcome`. This microprocess
        // calls them, while no reference from here exists.
        unsafe { (*self.waiter.get()).as_ref() }
    }

    /// Records what a waker did to the node, which is no longer in a queue.
    fn note_outcome(&self) {
        match self.waiter().map(Waiter::outcome) {
            Some(Outcome::Granted) => self.progress.set(Progress::Done),
            Some(Outcome::Disconnected) => self.progress.set(Progress::Disconnected),
            Some(Outcome::TimedOut) | None => {}
        }
        // SAFETY: the node has left its queue, so only this microprocess knows it.
        unsafe { *self.waiter.get() = None };
    }

    /// Moves the message out of the slot, which holds one.
    ///
    /// # Safety
    /// The slot is full, and the caller makes it count as empty from now on.
    unsafe fn take_message(&self) -> T {
        // SAFETY: no waiter is queued, so no other microprocess accesses the slot.
        let slot = unsafe { &*self.slot.get() };
        // SAFETY: promised by the caller.
        unsafe { slot.assume_init_read() }
    }
}

/// Receiving as an arm of a [`Select`](crate::wait::select::Select).
pub struct RecvArm<'a, T> {
    parts: Parts<'a, T>,
}

impl<'a, T> RecvArm<'a, T> {
    pub(crate) fn new(receiver: &'a Receiver<T>) -> Self {
        Self { parts: Parts::new(receiver.shared(), MaybeUninit::uninit()) }
    }

    /// Whether this arm was selected.
    pub fn is_selected(&self) -> bool {
        self.parts.is_over()
    }

    /// The result of the receive, if this arm was selected.
    pub fn finish(self) -> Option<Result<T, RecvError>> {
        match self.parts.progress.replace(Progress::Open) {
            Progress::Open => None,
            // SAFETY: `Done` means that a message is in the slot. The arm is `Open` now, so the
            // slot counts as empty.
            Progress::Done => Some(Ok(unsafe { self.parts.take_message() })),
            Progress::Disconnected => Some(Err(RecvError)),
        }
    }
}

impl<T> Operation for RecvArm<'_, T> {
    fn attempt(&self) -> bool {
        match self.parts.shared.try_recv() {
            Ok(message) => {
                // SAFETY: an open arm's slot is empty and no waiter is queued.
                unsafe { (*self.parts.slot.get()).write(message) };
                self.parts.progress.set(Progress::Done);
            }
            Err(TryRecvError::Disconnected) => self.parts.progress.set(Progress::Disconnected),
            Err(TryRecvError::Empty) => return false,
        }
        true
    }

    unsafe fn enlist(&self, episode: &Episode, index: u32) -> bool {
        let waiter = self.parts.make_waiter(episode, index);
        // SAFETY: the waiter is in the arm, which the caller keeps until `withdraw`.
        unsafe { self.parts.shared.enlist_receiver(waiter, episode) }
    }

    fn rank_anew(&self, level: u8) {
        if let Some(waiter) = self.parts.waiter() {
            self.parts.shared.rank_receiver(waiter, level);
        }
    }

    fn withdraw(&self) {
        if let Some(waiter) = self.parts.waiter() {
            self.parts.shared.withdraw_receiver(waiter);
            self.parts.note_outcome();
        }
    }

    fn is_over(&self) -> bool {
        self.parts.is_over()
    }
}

impl<T> Drop for RecvArm<'_, T> {
    fn drop(&mut self) {
        if self.parts.progress.get() == Progress::Done {
            // SAFETY: `Done` means that a message is in the slot, and the arm is being dropped.
            drop(unsafe { self.parts.take_message() });
        }
    }
}

impl<T> fmt::Debug for RecvArm<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecvArm").field("selected", &self.is_selected()).finish_non_exhaustive()
    }
}

/// Sending as an arm of a [`Select`](crate::wait::select::Select); holds the message.
pub struct SendArm<'a, T> {
    parts: Parts<'a, T>,
}

impl<'a, T> SendArm<'a, T> {
    pub(crate) fn new(sender: &'a Sender<T>, message: T) -> Self {
        Self { parts: Parts::new(sender.shared(), MaybeUninit::new(message)) }
    }

    /// Whether this arm was selected.
    pub fn is_selected(&self) -> bool {
        self.parts.is_over()
    }

    /// The result of the send, if this arm was selected; the message itself if it was not.
    ///
    /// # Errors
    /// The message, if another arm was selected.
    pub fn finish(self) -> Result<Result<(), SendError<T>>, T> {
        // `Done` makes the slot count as empty, however the arm ended.
        match self.parts.progress.replace(Progress::Done) {
            Progress::Done => Ok(Ok(())),
            // SAFETY: an unsent message is in the slot, which counts as empty now.
            Progress::Open => Err(unsafe { self.parts.take_message() }),
            // SAFETY: as above.
            Progress::Disconnected => Ok(Err(SendError(unsafe { self.parts.take_message() }))),
        }
    }
}

impl<T> Operation for SendArm<'_, T> {
    fn attempt(&self) -> bool {
        // SAFETY: an open arm's slot is full. Below it is filled again, or the arm is done.
        let message = unsafe { self.parts.take_message() };
        let (progress, back) = match self.parts.shared.try_send(message) {
            Ok(()) => {
                self.parts.progress.set(Progress::Done);
                return true;
            }
            Err(TrySendError::Full(message)) => (Progress::Open, message),
            Err(TrySendError::Disconnected(message)) => (Progress::Disconnected, message),
        };
        // SAFETY: the slot was emptied above and no waiter is queued.
        unsafe { (*self.parts.slot.get()).write(back) };
        self.parts.progress.set(progress);
        progress != Progress::Open
    }

    unsafe fn enlist(&self, episode: &Episode, index: u32) -> bool {
        let waiter = self.parts.make_waiter(episode, index);
        // SAFETY: the waiter is in the arm, which the caller keeps until `withdraw`.
        unsafe { self.parts.shared.enlist_sender(waiter, episode) }
    }

    fn rank_anew(&self, level: u8) {
        if let Some(waiter) = self.parts.waiter() {
            self.parts.shared.rank_sender(waiter, level);
        }
    }

    fn withdraw(&self) {
        if let Some(waiter) = self.parts.waiter() {
            self.parts.shared.withdraw_sender(waiter);
            self.parts.note_outcome();
        }
    }

    fn is_over(&self) -> bool {
        self.parts.is_over()
    }
}

impl<T> Drop for SendArm<'_, T> {
    fn drop(&mut self) {
        if self.parts.progress.get() != Progress::Done {
            // SAFETY: an unsent message is in the slot, and the arm is being dropped.
            drop(unsafe { self.parts.take_message() });
        }
    }
}

impl<T> fmt::Debug for SendArm<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SendArm").field("selected", &self.is_selected()).finish_non_exhaustive()
    }
}
