//! In models every thread is a microprocess.

pub(crate) fn count_lock() {
    unreachable!("there are no kernel threads outside the runtime");
}

pub(crate) fn uncount_lock() {
    unreachable!("there are no kernel threads outside the runtime");
}
