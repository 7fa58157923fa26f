//! In models every thread is a microprocess.

pub(crate) fn holds_one_more() {
    unreachable!("no kernel thread of no runtime");
}

pub(crate) fn holds_one_less() {
    unreachable!("no kernel thread of no runtime");
}
