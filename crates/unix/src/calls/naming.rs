//! Descriptors for naming alone (`O_PATH`).
//!
//! The host's listener cannot hand them over, but a message can. So the client gets a socket in
//! which such a message waits, and is diverted to receive it:
//!
//! ```text
//!   open(O_PATH) ─► server: a message with the descriptor; its socket goes to the client
//!                ─► client, in the launcher's page: recvmsg, close, RETURN
//!   chdir        ─► the same, and then: fchdir, close, RETURN
//! ```
//!
//! The `struct msghdr` is below the client's stack. If a hostile client changes it, the host's
//! answer concerns that client alone.

use crate::errors::host;
use crate::program::launcher::{self, RED_ZONE};
use crate::program::loading::Completion;
use crate::server::{Answer, Request};
use kyocho_sys::error::Errno;
use kyocho_sys::passing;
use kyocho_sys::remote::Registers;
use kyocho_sys::seccomp::Inherited;
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use std::os::fd::{AsFd, BorrowedFd};

/// A `struct msghdr`, a `struct iovec`, its one byte in a word, and a control message with one
/// number.
const HEADER_WORDS: u64 = 7;
const PART_AT: u64 = 8 * HEADER_WORDS;
const BYTE_AT: u64 = PART_AT + 16;
const CONTROL_AT: u64 = BYTE_AT + 8;
const NUMBER_AT: u64 = CONTROL_AT + 16;
const BLOCK_BYTES: u64 = NUMBER_AT + 8;

/// The bytes that the host reads at `start`. The place of the number contains the error that holds
/// if the host writes none: there is no room for another descriptor.
fn block(start: u64) -> Vec<u8> {
    let header = [0, 0, start + PART_AT, 1, start + CONTROL_AT, BLOCK_BYTES - CONTROL_AT, 0];
    let part = [start + BYTE_AT, 1];
    let no_room = u64::from((-libc::EMFILE) as u32);
    let rest = [0, 0, 0, no_room];
    header.iter().chain(&part).chain(&rest).flat_map(|word| word.to_le_bytes()).collect()
}

impl Request<'_> {
    /// Hands over `file`. The client's call returns its number.
    pub(crate) fn give_naming(
        &self,
        file: BorrowedFd<'_>,
        inherited: Inherited,
    ) -> Result<Answer, Errno> {
        self.give_and(file, inherited, Completion::Number)
    }

    /// Makes the client enter the directory `file`.
    pub(crate) fn enter(&self, file: BorrowedFd<'_>) -> Result<Answer, Errno> {
        self.give_and(file, Inherited::No, Completion::Enter)
    }

    fn give_and(
        &self,
        file: BorrowedFd<'_>,
        inherited: Inherited,
        then: impl FnOnce(u64) -> Completion,
    ) -> Result<Answer, Errno> {
        let kind = SocketType::SEQPACKET;
        let (ours, theirs) =
            rustix::net::socketpair(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None)
                .map_err(host)?;
        passing::send(ours.as_fd(), &[0], &[file])?;
        let number = self.listener.give(self.asked.id, theirs.as_fd(), Inherited::No)?;
        let flags = if inherited == Inherited::Yes { 0 } else { libc::MSG_CMSG_CLOEXEC };
        self.divert(|client, registers| {
            let start =
                registers.rsp.checked_sub(RED_ZONE + BLOCK_BYTES).ok_or(Errno::FAULT)? & !15;
            client.write(start, &block(start))?;
            // Handlers that run before the call ends use the stack below this.
            registers.rsp = start;
            call(registers, libc::SYS_recvmsg, [number as u64, start, flags as u64]);
            Ok(then(start + NUMBER_AT))
        })
    }
}

/// Makes a diverted client call the host with a descriptor as first word, and close the descriptor.
pub(crate) fn call(registers: &mut Registers, number: libc::c_long, words: [u64; 3]) {
    registers.rip = launcher::address(|launcher| launcher.chdir);
    registers.rax = number as u64;
    [registers.rdi, registers.rsi, registers.rdx] = words;
}

#[cfg(test)]
mod tests {
    use super::{BLOCK_BYTES, NUMBER_AT, block};

    #[test]
    fn the_number_stands_where_the_host_writes_it() {
        let start = 0x1000;
        let bytes = block(start);
        assert_eq!(bytes.len() as u64, BLOCK_BYTES);
        let word = |at: u64| u64::from_le_bytes(bytes[at as usize..][..8].try_into().unwrap());
        let control = word(core::mem::offset_of!(libc::msghdr, msg_control) as u64);
        assert_eq!(control + size_of::<libc::cmsghdr>() as u64, start + NUMBER_AT);
        assert_eq!(word(core::mem::offset_of!(libc::msghdr, msg_controllen) as u64), 24);
        assert_eq!(word(NUMBER_AT) as u32 as i32, -libc::EMFILE);
    }
}
