//! How many there may be of something at a time: connections of editors, sessions of a connection.

use kyocho_sys::prim::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

/// Counts the places that are taken.
#[derive(Debug, Default)]
pub(crate) struct Room(AtomicUsize);

/// A place: free again when this is dropped.
#[derive(Debug)]
pub(crate) struct Place(Arc<Room>);

impl Room {
    /// One more place; none where `max` are taken, which may be another number each time.
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
        assert!(room.enter(2).is_none(), "who is refused takes none");
        assert!(room.enter(3).is_some(), "and is let in where there is room");
        drop(places);
        assert!(room.enter(1).is_some());
    }
}
