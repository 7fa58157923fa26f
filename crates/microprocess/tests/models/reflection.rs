//! Waiting for what another thread is about to do.

pub(crate) fn let_others_run() {
    loom::thread::yield_now();
}
