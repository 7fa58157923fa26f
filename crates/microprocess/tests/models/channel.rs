//! The real channels, with ends that only count.

use std::sync::Arc;

#[path = "../../src/wait/channel/arm.rs"]
mod arm;
#[path = "../../src/wait/channel/buffer.rs"]
mod buffer;
#[path = "../../src/wait/channel/error.rs"]
mod error;
#[path = "../../src/wait/channel/shared.rs"]
mod shared;

pub(crate) use arm::{RecvArm, SendArm};
pub(crate) use error::SendTimeoutError;
use {buffer::Buffer, shared::Shared};

pub(crate) struct Sender<T> {
    shared: Arc<Shared<T>>,
}

pub(crate) struct Receiver<T> {
    shared: Arc<Shared<T>>,
}

/// A channel with room for this many messages.
pub(crate) fn bounded<T>(messages_max: usize) -> (Sender<T>, Receiver<T>) {
    let shared = Arc::new(Shared::new(Buffer::ring(messages_max)));
    (Sender { shared: Arc::clone(&shared) }, Receiver { shared })
}

impl<T> Sender<T> {
    pub(crate) fn shared(&self) -> &Shared<T> {
        &self.shared
    }
}

impl<T> Receiver<T> {
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
        // If an execution has failed, waiters are gone with their stacks.
        if !std::thread::panicking() {
            self.shared.drop_sender();
        }
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.shared.drop_receiver();
        }
    }
}
