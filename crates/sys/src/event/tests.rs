//! The event counter.

use super::Event;

#[test]
fn notifications_add_up_until_drained() {
    let event = Event::new().unwrap();
    assert_eq!(event.drain(), Ok(0));
    event.notify().unwrap();
    event.notify().unwrap();
    assert_eq!(event.drain(), Ok(2));
    assert_eq!(event.drain(), Ok(0));
}
