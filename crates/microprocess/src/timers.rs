//! Who sleeps until when: an intrusive pairing heap, the pure part of timers.
//!
//! The links lie in the sleepers, so nothing is allocated: events are masked when a timer is set.
//!
//! ```text
//!   root ── earliest deadline
//!    └ child ─ next ─ next …      each not earlier than its parent
//!        └ child …                `previous`: left neighbour, or the parent for a first child
//! ```
//!
//! **Invariant:** a parent's deadline is not later than its children's.
//!
//! `insert` and `earliest` are O(1), `take_earliest` and `remove` O(log n) amortised. No recursion: a
//! heap of a million sleepers needs no stack.

use core::cell::Cell;

/// The links of one sleeper; its deadline means something while it is in a heap.
pub(crate) struct Links<R: 'static> {
    deadline_ns: Cell<u64>,
    child: Cell<Option<&'static R>>,
    next: Cell<Option<&'static R>>,
    previous: Cell<Option<&'static R>>,
    inside: Cell<bool>,
}

impl<R> Links<R> {
    pub(crate) const fn new() -> Self {
        Self {
            deadline_ns: Cell::new(0),
            child: Cell::new(None),
            next: Cell::new(None),
            previous: Cell::new(None),
            inside: Cell::new(false),
        }
    }

    /// As new: the heap that the sleeper may have been in is no more.
    pub(crate) fn forget(&self) {
        self.inside.set(false);
        self.child.set(None);
        self.next.set(None);
        self.previous.set(None);
    }

    /// Whether the sleeper is in a heap.
    #[inline]
    pub(crate) fn is_set(&self) -> bool {
        self.inside.get()
    }
}

/// What can sleep: something with links of its own, in at most one heap.
pub(crate) trait Sleeper: 'static + Sized {
    fn links(&self) -> &Links<Self>;
}

/// Sleepers by deadline.
pub(crate) struct Timers<R: 'static> {
    root: Cell<Option<&'static R>>,
}

impl<R: Sleeper> Timers<R> {
    pub(crate) const fn new() -> Self {
        Self { root: Cell::new(None) }
    }

    /// The earliest deadline.
    #[inline]
    pub(crate) fn earliest_ns(&self) -> Option<u64> {
        self.root.get().map(|root| root.links().deadline_ns.get())
    }

    /// Adds `sleeper`.
    pub(crate) fn insert(&self, sleeper: &'static R, deadline_ns: u64) {
        let links = sleeper.links();
        debug_assert!(!links.inside.get(), "a sleeper waits for one deadline at a time");
        links.deadline_ns.set(deadline_ns);
        links.inside.set(true);
        links.child.set(None);
        links.next.set(None);
        links.previous.set(None);
        self.root.set(Some(match self.root.get() {
            None => sleeper,
            Some(root) => meld(root, sleeper),
        }));
    }

    /// Takes the sleeper with the earliest deadline if that is not later than `now_ns`.
    pub(crate) fn take_due(&self, now_ns: u64) -> Option<&'static R> {
        let root = self.root.get()?;
        if root.links().deadline_ns.get() > now_ns {
            return None;
        }
        self.remove(root);
        Some(root)
    }

    /// Takes `sleeper` out; does nothing if it is in no heap.
    pub(crate) fn remove(&self, sleeper: &'static R) {
        let links = sleeper.links();
        if !links.inside.replace(false) {
            return;
        }
        let orphans = merge_all(links.child.take());
        let is_root = self.root.get().is_some_and(|root| core::ptr::eq(root, sleeper));
        if is_root {
            return self.root.set(orphans);
        }
        let (next, previous) = (links.next.take(), links.previous.take());
        if let Some(next) = next {
            next.links().previous.set(previous);
        }
        if let Some(previous) = previous {
            let links = previous.links();
            // A first child's `previous` is its parent, which points down; otherwise it is a sibling.
            if links.child.get().is_some_and(|child| core::ptr::eq(child, sleeper)) {
                links.child.set(next);
            } else {
                links.next.set(next);
            }
        }
        if let (Some(root), Some(orphans)) = (self.root.get(), orphans) {
            self.root.set(Some(meld(root, orphans)));
        }
    }
}

/// Joins two heaps, given by roots without neighbours.
fn meld<R: Sleeper>(a: &'static R, b: &'static R) -> &'static R {
    let (parent, child) =
        if a.links().deadline_ns <= b.links().deadline_ns { (a, b) } else { (b, a) };
    let elder = parent.links().child.get();
    if let Some(elder) = elder {
        elder.links().previous.set(Some(child));
    }
    child.links().next.set(elder);
    child.links().previous.set(Some(parent));
    parent.links().child.set(Some(child));
    parent
}

/// Joins a row of siblings into one heap: in pairs from the left, then the pairs from the right.
fn merge_all<R: Sleeper>(first: Option<&'static R>) -> Option<&'static R> {
    let (mut rest, mut pairs) = (first, None::<&'static R>);
    while let Some(left) = rest {
        let right = left.links().next.take();
        rest = right.and_then(|right| right.links().next.take());
        let pair = right.map_or(left, |right| meld(left, right));
        pair.links().next.set(pairs);
        pairs = Some(pair);
    }
    let mut root = None::<&'static R>;
    while let Some(pair) = pairs {
        pairs = pair.links().next.take();
        root = Some(root.map_or(pair, |root| meld(root, pair)));
    }
    if let Some(root) = root {
        root.links().previous.set(None);
    }
    root
}

#[cfg(test)]
mod tests;
