use core::time::Duration;
use std::os::fd::AsFd;

use super::{Interest, wait};
use crate::event::Event;

#[test]
fn wait_distinguishes_ready_from_not_ready() {
    let (quiet, loud) = (Event::new().unwrap(), Event::new().unwrap());
    let wanted = || [(quiet.as_fd(), Interest::Read), (loud.as_fd(), Interest::Read)];
    assert_eq!(wait(wanted(), Some(Duration::from_millis(1))), Ok(false));
    loud.notify().unwrap();
    assert_eq!(wait(wanted(), None), Ok(true));
    assert_eq!(wait([(quiet.as_fd(), Interest::Write)], None), Ok(true));
}
