//! In models every thread is a microprocess.

pub(crate) fn holds_one_more() {
    unreachable!("there are no kernel threads outside the runtime");
}

pub(crate) fn holds_one_less() {
    unreachable!("there are no kernel threads outside the runtime");
}
