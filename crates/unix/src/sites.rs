//! Call sites that are rewritten: what was served once goes to the launcher's page from then on, where it becomes a call that the host does.
//!
//! ```text
//!   before   41 89 ca   b8 06 01 00 00   0f 05   3d 00 f0 ff ff 77     mov r10d, ecx   mov eax, 262            syscall    cmp eax, -4096   ja
//!   after    41 89 ca   b8 .. .. .. ..   ff d0   3d 00 f0 ff ff 77                     mov eax, `stat` there   call rax
//! ```
//!
//! This is `fstat` of the C library up to its version 2.38: `newfstatat` with an empty path. No filter sees that it is empty, so it would be served each time, and a program
//! asks so of every library and every file of its language. Around these bytes that library keeps nothing below its stack pointer, where a call puts its way back.
//!
//! **Invariant:** bytes change while nobody can run them: the process has one thread, which is asleep in this very call, and shares its memory with no parent.
//!
//! What is rewritten is the client's own copy of a page. One that makes the same bytes has them rewritten, and gains nothing: it could write them itself.
//!
//! Source: Paper 2's emulation library redirects calls where they are made, too.

use crate::client::status_field;
use crate::instance::Personality;
use crate::launcher;
use crate::server::Request;
use kyocho_sys::error::Errno;
use kyocho_sys::prim::atomic::{AtomicBool, Ordering};
use kyocho_sys::remote;

const SITE: [u8; 16] =
    [0x41, 0x89, 0xca, 0xb8, 0x06, 0x01, 0, 0, 0x0f, 0x05, 0x3d, 0x00, 0xf0, 0xff, 0xff, 0x77];
/// What is replaced of it, and where a caller goes on.
const REPLACED: core::ops::Range<usize> = 3..10;

/// What stands in place of [`SITE`]'s call when `stat` is the address to go to.
fn rewritten(stat: u32) -> [u8; REPLACED.end - REPLACED.start] {
    let [a, b, c, d] = stat.to_le_bytes();
    [0xb8, a, b, c, d, 0xff, 0xd0]
}

impl Request<'_> {
    /// Has the caller's next calls of this kind from the same place done by the host, where that place is known and the host permits it.
    pub(crate) fn rewrite_site(&self) {
        static REFUSED: AtomicBool = AtomicBool::new(false);
        if self.server.personality == Personality::Linux && !REFUSED.load(Ordering::Relaxed) {
            // Nothing is lost but time. A process that is gone says nothing about the host.
            let refused = self.try_rewrite().is_err_and(|errno| errno != Errno::SRCH);
            REFUSED.fetch_or(refused, Ordering::Relaxed);
        }
    }

    fn try_rewrite(&self) -> Result<(), Errno> {
        let thread = self.client.thread;
        let Some(start) = self.asked.program_counter.checked_sub(REPLACED.end as u64) else {
            return Ok(());
        };
        let mut found = [0; SITE.len()];
        if self.client.read(start, &mut found).is_err() || found != SITE {
            return Ok(());
        }
        let parent = status_field(thread, "PPid:", 10)?;
        if status_field(thread, "Threads:", 10)? != 1 || remote::shares_memory(parent, thread)? {
            return Ok(());
        }
        let stat = launcher::address(|launcher| launcher.stat);
        remote::patch(thread, start + REPLACED.start as u64, &rewritten(stat as u32))
    }
}

#[cfg(test)]
mod tests {
    use super::{REPLACED, SITE, rewritten};

    #[test]
    fn a_call_takes_the_place_of_a_system_call() {
        assert_eq!(SITE[REPLACED], [0xb8, 0x06, 0x01, 0, 0, 0x0f, 0x05]);
        assert_eq!(rewritten(0x1_0345), [0xb8, 0x45, 0x03, 0x01, 0, 0xff, 0xd0]);
        assert!(
            crate::launcher::address(|launcher| launcher.stat) < u64::from(crate::launcher::GUARD)
        );
    }
}
