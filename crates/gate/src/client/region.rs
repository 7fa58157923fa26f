//! Regions: memory that a client shares with one server.

use std::os::fd::AsFd;
use std::sync::Arc;

use kyocho_sys::sealed::{SealedMemory, Writers};

use super::connection::Connection;
use crate::error::Error;
use crate::handshake::Message;
use crate::slice::{REGION_BYTES_MAX, Slice, WORD};

/// Memory that a client shares with one server until the region is dropped. Calls pass it without
/// copying.
#[derive(Debug)]
pub struct Region {
    connection: Arc<Connection>,
    number: u32,
    memory: Arc<SealedMemory>,
}

impl Region {
    pub(super) fn new(connection: &Arc<Connection>, bytes: usize) -> Result<Self, Error> {
        if bytes > REGION_BYTES_MAX {
            return Err(Error::TooLong { bytes, bytes_max: REGION_BYTES_MAX });
        }
        let memory = Arc::new(SealedMemory::new(bytes.next_multiple_of(WORD), Writers::All)?);
        let number = connection.take_region_number()?;
        let region = Self { connection: Arc::clone(connection), number, memory };
        let descriptors = [region.memory.as_fd()];
        Message::Attach { number }.send(connection.liveness.socket(), &descriptors)?;
        Ok(region)
    }

    pub(super) fn number(&self) -> u32 {
        self.number
    }

    pub(super) fn belongs_to(&self, connection: &Arc<Connection>) -> bool {
        Arc::ptr_eq(&self.connection, connection)
    }

    /// The slice of `bytes` bytes at byte `offset`; `None` if the region is shorter, or if `offset`
    /// is not a multiple of 8.
    #[must_use]
    pub fn slice(&self, offset: usize, bytes: usize) -> Option<Slice> {
        Slice::new(&self.memory, offset as u64, bytes as u64)
    }

    /// The whole region as a slice.
    #[must_use]
    pub fn whole(&self) -> Slice {
        Slice::whole(&self.memory)
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // Fails only if the connection is closed; then the server has unmapped the region.
        let socket = self.connection.liveness.socket();
        let _closed = Message::Detach { number: self.number }.send(socket, &[]);
        self.connection.release_region_number(self.number);
    }
}
