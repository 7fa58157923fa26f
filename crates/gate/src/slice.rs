//! Memory handed to a server without copying.
//!
//! A client makes a [`Region`] once; the server maps it. After that a call names a [`Slice`] of it, for arguments, results or both. The memory is
//! sealed, so neither side can cut it short; but both may write it at any time. What the server needs to trust it therefore copies once
//! and checks ([`Slice::copy`], the default); what it merely moves it may touch [in place](Slice::in_place).
#![expect(unsafe_code, reason = "atomic words in a shared mapping")]

use core::{ptr, slice};
use std::os::fd::AsFd;
use std::sync::Arc;

use kyocho_sys::prim::atomic::AtomicU64;
use kyocho_sys::sealed::{SealedMemory, Writers};

use crate::client::Line;
use crate::error::{Error, Failure};
use crate::frame::{copy_in, copy_out};
use crate::handshake::Message;

/// Most regions of one connection at a time.
pub const REGIONS_MAX: usize = 64;
/// Most bytes of one region.
pub const REGION_BYTES_MAX: usize = 1 << 30;

const WORD: usize = size_of::<u64>();

/// Memory that a client shares with one server, until dropped.
#[derive(Debug)]
pub struct Region {
    line: Arc<Line>,
    number: u32,
    memory: Arc<SealedMemory>,
}

impl Region {
    pub(crate) fn new(line: &Arc<Line>, bytes: usize) -> Result<Self, Error> {
        if bytes > REGION_BYTES_MAX {
            return Err(Error::TooLong { bytes, bytes_max: REGION_BYTES_MAX });
        }
        let memory = Arc::new(SealedMemory::new(bytes.next_multiple_of(WORD), Writers::All)?);
        let number = line.take_region_number()?;
        let region = Self { line: Arc::clone(line), number, memory };
        Message::Attach { number }.send(line.life.socket(), &[region.memory.as_fd()])?;
        Ok(region)
    }

    pub(crate) fn number(&self) -> u32 {
        self.number
    }

    pub(crate) fn is_of(&self, line: &Arc<Line>) -> bool {
        Arc::ptr_eq(&self.line, line)
    }

    /// `bytes` of it from `offset` on; `None` where it is shorter, or `offset` is no multiple of 8.
    #[must_use]
    pub fn slice(&self, offset: usize, bytes: usize) -> Option<Slice> {
        Slice::new(&self.memory, offset as u64, bytes as u64)
    }

    /// All of it.
    #[must_use]
    pub fn whole(&self) -> Slice {
        Slice { memory: Arc::clone(&self.memory), offset: 0, bytes: self.memory.bytes() }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // A server that is gone has let go of it already.
        let _gone = Message::Detach { number: self.number }.send(self.line.life.socket(), &[]);
        self.line.put_region_number(self.number);
    }
}

/// A part of a region. It stays mapped as long as this lives.
#[derive(Debug, Clone)]
pub struct Slice {
    memory: Arc<SealedMemory>,
    offset: usize,
    bytes: usize,
}

impl Slice {
    /// As alleged: checked against the memory that is there.
    pub(crate) fn new(memory: &Arc<SealedMemory>, offset: u64, bytes: u64) -> Option<Self> {
        let end = offset.checked_add(bytes)?;
        let fits = end <= memory.bytes() as u64 && offset.is_multiple_of(WORD as u64);
        let (offset, bytes) = (offset as usize, bytes as usize);
        fits.then(|| Self { memory: Arc::clone(memory), offset, bytes })
    }

    pub(crate) fn range(&self) -> (u64, u64) {
        (self.offset as u64, self.bytes as u64)
    }

    /// Its length.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Its memory as words, the last of which it may fill in part only. The other side may change them at any time: a word that is read twice
    /// may differ.
    #[must_use]
    pub fn in_place(&self) -> &[AtomicU64] {
        let address = self.memory.base() + self.offset;
        let words = self.bytes.div_ceil(WORD);
        // SAFETY: inside the mapping, whose length is a multiple of a word and which lasts as long as `self`; aligned; all access is atomic.
        unsafe { slice::from_raw_parts(ptr::with_exposed_provenance(address), words) }
    }

    /// A copy of it: what is checked there stays as it is.
    #[must_use]
    pub fn copy(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.bytes];
        copy_out(self.in_place(), &mut bytes);
        bytes
    }

    /// Writes `bytes` to its beginning.
    ///
    /// # Errors
    /// [`Failure::NoRegion`]: it is shorter.
    pub fn write(&self, bytes: &[u8]) -> Result<(), Failure> {
        if bytes.len() > self.bytes {
            return Err(Failure::NoRegion);
        }
        copy_in(self.in_place(), bytes);
        Ok(())
    }
}
