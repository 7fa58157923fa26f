//! Limits the number of things at a time: connections of editors, sessions of a connection.

use kyocho_sys::prim::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

/// Counts the things.
#[derive(Debug, Default)]
pub(crate) struct Room(AtomicUsize);

/// One thing that is counted until this is dropped.
#[derive(Debug)]
pub(crate) struct Place(Arc<Room>);

impl Room {
    /// Counts one more, or returns `None` if there are `max` already. `max` may differ from call to
    /// call.
    pub(crate) fn enter(self: &Arc<Self>, max: usize) -> Option<Place> {
        let more = |taken| (taken < max).then_some(taken + 1);
        let entered = self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, more);
        entered.is_ok().then(|| Place(Arc::clone(self)))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::Room;
    use std::sync::Arc;

    #[test]
    fn places_are_limited_and_reused() {
        let room = Arc::new(Room::default());
        let places: Vec<_> = (0..3).map_while(|_| room.enter(2)).collect();
        assert_eq!(places.len(), 2);
        assert!(room.enter(2).is_none(), "a refused attempt takes no place");
        assert!(room.enter(3).is_some(), "a larger limit admits one more");
        drop(places);
        assert!(room.enter(1).is_some());
    }
}
