//! What is learned of a caller is returned while it waits, and nothing once it does not.

use super::Client;
use kyocho_sys::error::Errno;
use kyocho_sys::prim::atomic::{AtomicU64, Ordering};
use kyocho_sys::prim::thread;
use kyocho_sys::seccomp::{Instruction, Listener, listen};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::mpsc::channel;

/// Sends calls of `sync` to the listener, and allows all others.
fn filter() -> [Instruction; 4] {
    let instruction = |code, jt, k| Instruction { code, jt, jf: 0, k };
    [
        instruction(0x20, 0, 0),
        Instruction { code: 0x15, jt: 0, jf: 1, k: libc::SYS_sync as u32 },
        instruction(0x06, 0, libc::SECCOMP_RET_USER_NOTIF),
        instruction(0x06, 0, libc::SECCOMP_RET_ALLOW),
    ]
}

/// Runs `with` with a caller that waits, and a function that ends the caller's call. After that the
/// number still belongs to the caller's thread, but nothing proves it.
fn with_caller(with: impl FnOnce(&Client<'_>, &dyn Fn())) {
    let (tell, hear) = channel();
    let caller = thread::spawn(move || {
        tell.send(listen(&filter())).unwrap();
        rustix::fs::sync();
    });
    let number = match hear.recv().unwrap() {
        Ok(number) => number,
        Err(errno) => {
            kyocho_sys::skip::skip("client", &format!("no filter with a listener: {errno}"));
            return;
        }
    };
    let listener = Listener::new(adopted(number));
    let asked = listener.receive().unwrap();
    let client = Client::of(&listener, &asked);
    with(&client, &|| listener.answer(asked.id, Ok(0)).unwrap());
    caller.join().unwrap();
}

fn adopted(number: i32) -> OwnedFd {
    let process = kyocho_sys::process::open(std::process::id()).unwrap();
    let flags = rustix::process::PidfdGetfdFlags::empty();
    rustix::process::pidfd_getfd(process, number, flags).unwrap()
}

#[test]
fn nothing_is_learned_of_a_caller_that_does_not_wait() {
    let word = Box::new(0x0123_4567_89ab_cdef_u64);
    let address = core::ptr::from_ref(word.as_ref()).expose_provenance() as u64;
    let file = OwnedFd::from(std::fs::File::open("/").unwrap());
    let number = file.as_raw_fd();
    with_caller(|client, end| {
        assert_eq!(client.word(address), Ok(*word));
        assert_eq!(client.process(), Ok(std::process::id()));
        assert_eq!(client.directory(number).as_deref(), Ok(b"/".as_slice()));
        assert!(client.umask().is_ok() && client.statistics().is_ok());
        assert!(client.object(number).is_ok() && client.any_descriptor(number).is_ok());
        end();
        // The thread still has its number, its memory and its descriptors.
        let gone = Errno::SRCH;
        assert_eq!(client.word(address), Err(gone));
        assert_eq!(client.read_some(address, &mut [0; 4]), Err(gone));
        assert_eq!(client.string(address, 4), Err(gone));
        assert_eq!(client.process(), Err(gone));
        assert_eq!(client.umask(), Err(gone));
        assert_eq!(client.directory(number), Err(gone));
        assert_eq!(client.statistics(), Err(gone));
        assert_eq!(client.object(number).unwrap_err(), gone);
        assert_eq!(client.any_descriptor(number).unwrap_err(), gone);
        assert_eq!(client.descriptor(number).unwrap_err(), gone);
    });
}

#[test]
fn nothing_is_written_to_a_process_that_has_the_number_of_an_ended_caller() {
    let word = AtomicU64::new(1);
    let address = word.as_ptr().expose_provenance() as u64;
    let value = || word.load(Ordering::Relaxed);
    with_caller(|client, end| {
        assert_eq!(client.write(address, &2_u64.to_le_bytes()), Ok(()));
        assert_eq!(value(), 2);
        end();
        assert_eq!(client.write(address, &3_u64.to_le_bytes()), Err(Errno::SRCH));
        assert_eq!(value(), 2);
    });
}
