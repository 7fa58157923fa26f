//! Channels: `kyocho_channel_*`.
//!
//! Every item is copied through a block of [`ITEM_BYTES_MAX`] bytes: copying a cache line costs
//! less than an allocation.
#![expect(unsafe_code, reason = "the boundary to C")]

use core::ffi::{c_int, c_void};
use core::mem::MaybeUninit;
use core::time::Duration;

use kyocho_microprocess::channel::{
    self, Receiver, RecvTimeoutError, SendTimeoutError, Sender, TryRecvError, TrySendError,
};

use crate::answer::{answer, caller};
use crate::error::{Code, Result};
use crate::mutex::Timeout;

/// The largest item.
const ITEM_BYTES_MAX: usize = 64;
/// Stands for an unbounded channel.
const UNBOUNDED: usize = usize::MAX;
/// The largest bound. Its buffer is allocated at once and takes a gigabyte.
const ITEMS_MAX: usize = 1 << 24;

/// A block with an item at its start.
pub(crate) type Item = [MaybeUninit<u8>; ITEM_BYTES_MAX];

/// The object behind a `kyocho_channel_t *`, on the heap.
pub(crate) struct Channel {
    item_bytes: usize,
    sender: Sender<Item>,
    receiver: Receiver<Item>,
}

/// The channel behind a pointer of C.
///
/// # Safety
/// `channel` is null, or was made by `kyocho_channel_create` and has not been destroyed.
pub(crate) unsafe fn at<'a>(channel: *const Channel) -> Result<&'a Channel> {
    // SAFETY: guaranteed by the caller.
    unsafe { channel.as_ref() }.ok_or(Code::INVALID)
}

impl Channel {
    pub(crate) fn sender(&self) -> &Sender<Item> {
        &self.sender
    }

    pub(crate) fn receiver(&self) -> &Receiver<Item> {
        &self.receiver
    }

    /// A block with a copy of `item`.
    ///
    /// # Safety
    /// `item` points to an item of the channel.
    pub(crate) unsafe fn read(&self, item: *const c_void) -> Item {
        let mut block: Item = [MaybeUninit::uninit(); ITEM_BYTES_MAX];
        // SAFETY: the caller guarantees an item of this size, which is at most that of the block.
        unsafe { block.as_mut_ptr().copy_from_nonoverlapping(item.cast(), self.item_bytes) };
        block
    }

    /// Copies the item of `block` to `item`.
    ///
    /// # Safety
    /// `item` is memory for an item of the channel.
    pub(crate) unsafe fn write(&self, block: &Item, item: *mut c_void) {
        // SAFETY: the caller guarantees memory of this size, which is at most that of the block.
        unsafe { item.copy_from_nonoverlapping(block.as_ptr().cast(), self.item_bytes) };
    }

    /// # Safety
    /// `item` is null or points to an item of the channel.
    unsafe fn send(&self, item: *const c_void, timeout: Timeout) -> Result<()> {
        if item.is_null() {
            return Err(Code::INVALID);
        }
        // SAFETY: guaranteed by the caller: an item of the channel.
        let block = unsafe { self.read(item) };
        match timeout {
            Timeout::Immediate => self.sender.try_send(block).map_err(|error| match error {
                TrySendError::Full(_) => Code::AGAIN,
                TrySendError::Disconnected(_) => Code::CLOSED,
            }),
            Timeout::Never => {
                caller()?;
                self.sender.send(block).map_err(|_| Code::CLOSED)
            }
            Timeout::After(limit) => {
                caller()?;
                self.sender.send_timeout(block, limit).map_err(|error| match error {
                    SendTimeoutError::Timeout(_) => Code::TIMED_OUT,
                    SendTimeoutError::Disconnected(_) => Code::CLOSED,
                })
            }
        }
    }

    /// # Safety
    /// `item` is null or memory for an item of the channel.
    unsafe fn receive(&self, item: *mut c_void, timeout: Timeout) -> Result<()> {
        if item.is_null() {
            return Err(Code::INVALID);
        }
        let block = match timeout {
            Timeout::Immediate => self.receiver.try_recv().map_err(|error| match error {
                TryRecvError::Empty => Code::AGAIN,
                TryRecvError::Disconnected => Code::CLOSED,
            }),
            Timeout::Never => {
                caller()?;
                self.receiver.recv().map_err(|_| Code::CLOSED)
            }
            Timeout::After(limit) => self.receive_within(limit),
        }?;
        // SAFETY: guaranteed by the caller: memory for an item of the channel.
        unsafe { self.write(&block, item) };
        Ok(())
    }

    fn receive_within(&self, limit: Duration) -> Result<Item> {
        caller()?;
        self.receiver.recv_timeout(limit).map_err(|error| match error {
            RecvTimeoutError::Timeout => Code::TIMED_OUT,
            RecvTimeoutError::Disconnected => Code::CLOSED,
        })
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn kyocho_channel_create(
    channel: *mut *mut Channel,
    item_bytes: usize,
    items_max: usize,
) -> c_int {
    answer(|| {
        // SAFETY: guaranteed by the caller: null or memory for a pointer.
        let place = unsafe { channel.as_mut() }.ok_or(Code::INVALID)?;
        let room = matches!(items_max, UNBOUNDED | 0..=ITEMS_MAX);
        if !matches!(item_bytes, 1..=ITEM_BYTES_MAX) || !room {
            return Err(Code::INVALID);
        }
        let (sender, receiver) = match items_max {
            UNBOUNDED => channel::unbounded(),
            items_max => channel::bounded(items_max),
        };
        *place = Box::into_raw(Box::new(Channel { item_bytes, sender, receiver }));
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn kyocho_channel_destroy(channel: *mut Channel) -> c_int {
    answer(|| {
        // SAFETY: guaranteed by the caller.
        unsafe { at(channel) }?;
        // SAFETY: made by `into_raw`; the caller guarantees that the channel is not used any more.
        drop(unsafe { Box::from_raw(channel) });
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn kyocho_channel_close(channel: *mut Channel) -> c_int {
    // SAFETY: guaranteed by the caller.
    answer(|| unsafe { at(channel) }.map(|channel| channel.sender.close()))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn kyocho_channel_send(channel: *mut Channel, item: *const c_void) -> c_int {
    answer(|| {
        // SAFETY: guaranteed by the caller.
        let channel = unsafe { at(channel) }?;
        // SAFETY: guaranteed by the caller.
        unsafe { channel.send(item, Timeout::Never) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn kyocho_channel_trysend(channel: *mut Channel, item: *const c_void) -> c_int {
    answer(|| {
        // SAFETY: guaranteed by the caller.
        let channel = unsafe { at(channel) }?;
        // SAFETY: guaranteed by the caller.
        unsafe { channel.send(item, Timeout::Immediate) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn kyocho_channel_timedsend(
    channel: *mut Channel,
    item: *const c_void,
    deadline: *const libc::timespec,
) -> c_int {
    answer(|| {
        // SAFETY: guaranteed by the caller.
        let timeout = unsafe { Timeout::until(deadline) }?;
        // SAFETY: guaranteed by the caller.
        let channel = unsafe { at(channel) }?;
        // SAFETY: guaranteed by the caller.
        unsafe { channel.send(item, timeout) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn kyocho_channel_recv(channel: *mut Channel, item: *mut c_void) -> c_int {
    answer(|| {
        // SAFETY: guaranteed by the caller.
        let channel = unsafe { at(channel) }?;
        // SAFETY: guaranteed by the caller.
        unsafe { channel.receive(item, Timeout::Never) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn kyocho_channel_tryrecv(channel: *mut Channel, item: *mut c_void) -> c_int {
    answer(|| {
        // SAFETY: guaranteed by the caller.
        let channel = unsafe { at(channel) }?;
        // SAFETY: guaranteed by the caller.
        unsafe { channel.receive(item, Timeout::Immediate) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn kyocho_channel_timedrecv(
    channel: *mut Channel,
    item: *mut c_void,
    deadline: *const libc::timespec,
) -> c_int {
    answer(|| {
        // SAFETY: guaranteed by the caller.
        let timeout = unsafe { Timeout::until(deadline) }?;
        // SAFETY: guaranteed by the caller.
        let channel = unsafe { at(channel) }?;
        // SAFETY: guaranteed by the caller.
        unsafe { channel.receive(item, timeout) }
    })
}
