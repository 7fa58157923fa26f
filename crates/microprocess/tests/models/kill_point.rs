//! In models no microprocess is killed.

use crate::guarded::Deadline;

pub(crate) fn hot_point() {}

pub(crate) fn after_wait(deadline: Option<Deadline>) {
    assert!(deadline.is_some(), "only a time limit ends a wait that is not granted");
}
