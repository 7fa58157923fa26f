//! Channels between microprocesses: rendezvous, bounded and unbounded.
//!
//! Any number of senders and receivers share a channel. Messages are received in the order in which
//! they were sent. Waiters on either side are served highest priority first, FIFO among equals. If
//! a receiver waits, a message is copied directly to that receiver's stack.
//!
//! A channel is disconnected when all ends of the other side are dropped, or when it is
//! [closed](Sender::close). Receivers still get what was sent before; senders get their message
//! back. The errors are those of [`std::sync::mpsc`].
//!
//! ```
//! use kyocho_microprocess::{channel, run, spawn};
//!
//! run(|| {
//!     let (numbers, squares) = (channel::rendezvous(), channel::bounded(4));
//!     let (to_worker, input) = numbers;
//!     let (output, results) = squares;
//!     spawn(move || {
//!         for number in input {
//!             output.send(number * number).unwrap();
//!         }
//!     });
//!     for number in 1..=3 {
//!         to_worker.send(number).unwrap();
//!     }
//!     drop(to_worker);
//!     assert_eq!(results.iter().collect::<Vec<i32>>(), [1, 4, 9]);
//! })
//! .unwrap();
//! ```

use core::{fmt, time::Duration};
use std::sync::Arc;

mod arm;
mod buffer;
mod error;
mod shared;

use self::{buffer::Buffer, shared::Shared};
use crate::schedule::kill_point;

pub use self::{
    arm::{RecvArm, SendArm},
    error::SendTimeoutError,
};
pub use std::sync::mpsc::{RecvError, RecvTimeoutError, SendError, TryRecvError, TrySendError};

/// A channel that holds nothing: a send waits until its message is received.
#[must_use]
pub fn rendezvous<T>() -> (Sender<T>, Receiver<T>) {
    bounded(0)
}

/// A channel that holds up to `messages_max` messages; with 0 it is a [`rendezvous`].
///
/// Memory for them is allocated at once.
#[must_use]
pub fn bounded<T>(messages_max: usize) -> (Sender<T>, Receiver<T>) {
    ends(Buffer::ring(messages_max))
}

/// A channel that holds any number of messages: a send never waits.
///
/// Memory grows with the number of messages not received yet. If a sender can be faster than its
/// receivers for long, use [`bounded`], which makes it wait.
#[must_use]
pub fn unbounded<T>() -> (Sender<T>, Receiver<T>) {
    ends(Buffer::blocks())
}

fn ends<T>(buffer: Buffer<T>) -> (Sender<T>, Receiver<T>) {
    let shared = Arc::new(Shared::new(buffer));
    (Sender { shared: Arc::clone(&shared) }, Receiver { shared })
}

/// The sending end of a channel.
pub struct Sender<T> {
    shared: Arc<Shared<T>>,
}

impl<T> Sender<T> {
    /// Sends a message; waits for room, or on a rendezvous channel for a receiver.
    ///
    /// # Errors
    /// The message inside a [`SendError`] if all receivers are dropped, or the channel is closed.
    #[inline]
    pub fn send(&self, message: T) -> Result<(), SendError<T>> {
        self.shared.send(message, None).map_err(|error| SendError(error.into_inner()))
    }

    /// Sends a message if that needs no waiting.
    ///
    /// # Errors
    /// The message inside [`TrySendError::Full`] or [`TrySendError::Disconnected`].
    #[inline]
    pub fn try_send(&self, message: T) -> Result<(), TrySendError<T>> {
        kill_point::hot_point();
        self.shared.try_send(message)
    }

    /// Sends a message; waits for at most `timeout`.
    ///
    /// # Errors
    /// The message inside [`SendTimeoutError::Timeout`] or [`SendTimeoutError::Disconnected`].
    pub fn send_timeout(&self, message: T, timeout: Duration) -> Result<(), SendTimeoutError<T>> {
        self.shared.send(message, Some(timeout))
    }

    /// Closes the channel for all senders. Receivers get what was sent, then the end. A sender that
    /// waits gets its message back.
    pub fn close(&self) {
        self.shared.close();
    }

    /// The number of messages sent and not yet received.
    #[must_use]
    pub fn len(&self) -> usize {
        self.shared.len()
    }

    /// Whether there is no message to receive.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether a send would wait for room; always true of a rendezvous channel.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.shared.is_full()
    }

    /// How many messages the channel can hold; `None` if there is no bound.
    #[must_use]
    pub fn capacity(&self) -> Option<usize> {
        self.shared.capacity()
    }

    /// The channel itself, for `select`.
    pub(crate) fn shared(&self) -> &Shared<T> {
        &self.shared
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        self.shared.add_sender();
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        self.shared.drop_sender();
    }
}

impl<T> fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender").finish_non_exhaustive()
    }
}

/// The receiving end of a channel.
///
/// Each message goes to one of the receivers.
pub struct Receiver<T> {
    shared: Arc<Shared<T>>,
}

impl<T> Receiver<T> {
    /// Receives a message, waiting for one.
    ///
    /// # Errors
    /// [`RecvError`] if there is no message, and all senders are dropped or the channel is closed.
    #[inline]
    pub fn recv(&self) -> Result<T, RecvError> {
        self.shared.recv(None).map_err(|_| RecvError)
    }

    /// Receives a message if that needs no waiting.
    ///
    /// # Errors
    /// [`TryRecvError::Empty`], or [`TryRecvError::Disconnected`] if in addition all senders are
    /// dropped or the channel is closed.
    #[inline]
    pub fn try_recv(&self) -> Result<T, TryRecvError> {
        kill_point::hot_point();
        self.shared.try_recv()
    }

    /// Receives a message; waits for at most `timeout`.
    ///
    /// # Errors
    /// [`RecvTimeoutError::Timeout`], or [`RecvTimeoutError::Disconnected`] if there is no message,
    /// and all senders are dropped or the channel is closed.
    pub fn recv_timeout(&self, timeout: Duration) -> Result<T, RecvTimeoutError> {
        self.shared.recv(Some(timeout))
    }

    /// An iterator that waits for each message; ends when the channel is disconnected.
    pub fn iter(&self) -> Iter<'_, T> {
        Iter { receiver: self }
    }

    /// An iterator over the messages that are present; never waits.
    pub fn try_iter(&self) -> TryIter<'_, T> {
        TryIter { receiver: self }
    }

    /// The number of messages sent and not yet received.
    #[must_use]
    pub fn len(&self) -> usize {
        self.shared.len()
    }

    /// Whether there is no message to receive.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many messages the channel can hold; `None` if there is no bound.
    #[must_use]
    pub fn capacity(&self) -> Option<usize> {
        self.shared.capacity()
    }

    /// The channel itself, for `select`.
    pub(crate) fn shared(&self) -> &Shared<T> {
        &self.shared
    }
}

impl<T> Clone for Receiver<T> {
    fn clone(&self) -> Self {
        self.shared.add_receiver();
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        self.shared.drop_receiver();
    }
}

impl<T> fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver").finish_non_exhaustive()
    }
}

/// The messages of a [`Receiver`], from [`Receiver::iter`].
#[derive(Debug)]
pub struct Iter<'a, T> {
    receiver: &'a Receiver<T>,
}

impl<T> Iterator for Iter<'_, T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.receiver.recv().ok()
    }
}

/// The messages that are present, from [`Receiver::try_iter`].
#[derive(Debug)]
pub struct TryIter<'a, T> {
    receiver: &'a Receiver<T>,
}

impl<T> Iterator for TryIter<'_, T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.receiver.try_recv().ok()
    }
}

/// The messages of a [`Receiver`] that the iterator owns.
#[derive(Debug)]
pub struct IntoIter<T> {
    receiver: Receiver<T>,
}

impl<T> Iterator for IntoIter<T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.receiver.recv().ok()
    }
}

impl<T> IntoIterator for Receiver<T> {
    type Item = T;
    type IntoIter = IntoIter<T>;

    fn into_iter(self) -> IntoIter<T> {
        IntoIter { receiver: self }
    }
}

impl<'a, T> IntoIterator for &'a Receiver<T> {
    type Item = T;
    type IntoIter = Iter<'a, T>;

    fn into_iter(self) -> Iter<'a, T> {
        self.iter()
    }
}

#[cfg(test)]
mod tests;
