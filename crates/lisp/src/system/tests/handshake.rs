//! A wait of a primitive in the kernel ends if there is a request for its thread, but not at the
//! end of a time slice. After a request the primitive is repeated, and the other side of a
//! connection sees both attempts.

use super::sessions::nap;
use super::{boot, on, within_watchdog};
use crate::kernel::session::thread::{LispThread, SAFE};
use kyocho_sys::prim::atomic::Ordering;
use std::io::{ErrorKind, Read};
use std::net::TcpListener;
use std::sync::Arc;

#[test]
fn a_handshake_is_not_restarted_at_the_end_of_a_time_slice() {
    within_watchdog(|| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let system = boot(on(1));
        let mut session = system.session();
        let text = format!(
            "(import (srfi 18) (kyocho tls))
             (define client
               (spawn (lambda () (guard (e (#t 'gone)) (tls-connect \"localhost\" {port})))))"
        );
        session.eval(&text, "test").unwrap();
        let (mut silent, _) = listener.accept().unwrap();
        // The client sends its hello and waits for an answer.
        silent.read_exact(&mut [0]).unwrap();
        let is_client = |one: &&Arc<LispThread>| {
            one.state.load(Ordering::SeqCst) == SAFE && one.microprocess.get().is_some()
        };
        let threads = system.kernel.threads.started();
        let client = threads.iter().rfind(is_client).unwrap();
        // As at the end of a slice: system calls are interrupted, and the thread has no request.
        client.microprocess.get().unwrap().want().unwrap();
        (0..20).for_each(|_| nap());
        drop(silent);
        let outcome = session.eval("(thread-join! client)", "test").unwrap();
        assert_eq!(outcome.values, ["gone"]);
        listener.set_nonblocking(true).unwrap();
        assert_eq!(listener.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
    });
}
