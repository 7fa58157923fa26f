//! A map from pages to values: a page table whose frames are indices of a slab.
//!
//! A look-up mostly costs one cache line of the table, and the slab entry. Pages may lie anywhere
//! in the space; a page without a value costs nothing.

use kyocho_pagetable::{ClusteredLine, FrameNumber, PageNumber, PageTable, Rights};

use crate::address::PageId;

/// A map from pages to values.
#[derive(Debug)]
pub(crate) struct Directory<T> {
    table: ClusteredLine,
    slab: Vec<Option<T>>,
    free: Vec<usize>,
}

/// `None` if there can be no such page.
fn number(page: PageId) -> Option<PageNumber> {
    PageNumber::new(page.0)
}

impl<T> Directory<T> {
    /// An empty map.
    pub(crate) fn new() -> Self {
        Self { table: ClusteredLine::new(), slab: Vec::new(), free: Vec::new() }
    }

    fn place(&self, page: PageId) -> Option<usize> {
        self.table.lookup(number(page)?).map(|found| found.frame.get() as usize)
    }

    /// The value of a page.
    pub(crate) fn get(&self, page: PageId) -> Option<&T> {
        self.slab[self.place(page)?].as_ref()
    }

    /// The value of a page, mutable.
    pub(crate) fn get_mut(&mut self, page: PageId) -> Option<&mut T> {
        let place = self.place(page)?;
        self.slab[place].as_mut()
    }

    /// The value of a page. Inserts the result of `new` if there is none.
    pub(crate) fn entry(&mut self, page: PageId, new: impl FnOnce() -> T) -> &mut T {
        let place = self.place(page).unwrap_or_else(|| self.put(page, new()));
        self.slab[place].as_mut().expect("the table has indices of used entries")
    }

    /// Sets the value of a page.
    pub(crate) fn insert(&mut self, page: PageId, value: T) {
        match self.place(page) {
            Some(place) => self.slab[place] = Some(value),
            None => drop(self.put(page, value)),
        }
    }

    /// Inserts a page that has no value; returns its index.
    fn put(&mut self, page: PageId, value: T) -> usize {
        let place = self.free.pop().unwrap_or(self.slab.len());
        if place == self.slab.len() {
            self.slab.push(None);
        }
        self.slab[place] = Some(value);
        let frame = FrameNumber::new(place as u64).expect("the slab has fewer than 2^43 entries");
        let number = number(page).expect("pages have numbers of 52 bits");
        let mapped = self.table.map(number, frame, Rights::NONE);
        mapped.expect("the table covers all pages");
        place
    }

    /// Removes a page; returns its value.
    pub(crate) fn remove(&mut self, page: PageId) -> Option<T> {
        let place = self.table.unmap(number(page)?)?.frame.get() as usize;
        self.free.push(place);
        self.slab[place].take()
    }

    /// All pages that have a value, ascending.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (PageId, &T)> {
        let mut places = Vec::with_capacity(self.slab.len() - self.free.len());
        self.table.for_each(PageNumber::FIRST..=PageNumber::LAST, |page, found| {
            places.push((PageId(page.get()), found.frame.get() as usize));
        });
        places.into_iter().filter_map(|(page, place)| Some((page, self.slab[place].as_ref()?)))
    }

    /// Removes all pages.
    pub(crate) fn clear(&mut self) {
        *self = Self::new();
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::Directory;
    use crate::address::PageId;

    #[derive(Debug, Clone)]
    enum Step {
        Insert(u64, u8),
        Add(u64),
        Remove(u64),
        Clear,
    }

    /// Clusters of pages, far apart, and at both ends of the space.
    fn page() -> impl Strategy<Value = u64> {
        const END: u64 = 1 << 52;
        prop_oneof![0..20_u64, 1 << 20..(1 << 20) + 20_u64, END - 20..END]
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            8 => (page(), any::<u8>()).prop_map(|(page, value)| Step::Insert(page, value)),
            8 => page().prop_map(Step::Add),
            8 => page().prop_map(Step::Remove),
            1 => Just(Step::Clear),
        ]
    }

    fn take(step: &Step, directory: &mut Directory<u8>, model: &mut BTreeMap<u64, u8>) {
        match *step {
            Step::Insert(page, value) => {
                directory.insert(PageId(page), value);
                model.insert(page, value);
            }
            Step::Add(page) => {
                let value = directory.entry(PageId(page), || 7);
                *value = value.wrapping_add(1);
                let value = model.entry(page).or_insert(7);
                *value = value.wrapping_add(1);
            }
            Step::Remove(page) => assert_eq!(directory.remove(PageId(page)), model.remove(&page)),
            Step::Clear => {
                directory.clear();
                model.clear();
            }
        }
    }

    proptest! {
        #[test]
        fn it_is_as_an_ordered_map(steps in prop::collection::vec(step(), 1..200)) {
            let (mut directory, mut model) = (Directory::new(), BTreeMap::new());
            for step in &steps {
                take(step, &mut directory, &mut model);
                let all: Vec<_> = directory.iter().map(|(page, value)| (page.0, *value)).collect();
                prop_assert_eq!(all, model.clone().into_iter().collect::<Vec<_>>());
            }
            for (page, value) in model {
                prop_assert_eq!(directory.get(PageId(page)), Some(&value));
                prop_assert_eq!(directory.get_mut(PageId(page)).copied(), Some(value));
            }
            prop_assert_eq!(directory.get(PageId(1 << 52)), None);
            prop_assert_eq!(directory.remove(PageId(u64::MAX)), None);
        }
    }
}
