//! An intrusive pairing heap, used for sleepers and for deadlines. Pure.
//!
//! The links lie in the elements, so insertion allocates nothing. It must not: events are masked
//! then.
//!
//! ```text
//!   root ── least key
//!    └ child ─ next ─ next …      each not less than its parent
//!        └ child …                `previous`: left neighbour, or the parent for a first child
//! ```
//!
//! **Invariant:** a parent's key is not greater than its children's.
//!
//! `insert` and `least` are O(1), `take_up_to` and `remove` O(log n) amortised. There is no
//! recursion, so a heap of a million elements needs no stack space.

use core::cell::Cell;
use core::marker::PhantomData;

use kyocho_sys::prim::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::data::link::Link;

/// The links of one element. The key is valid only while the element is in a heap.
pub(crate) struct Links<R: 'static> {
    key: AtomicU64,
    pub(crate) child: Link<R>,
    pub(crate) next: Link<R>,
    pub(crate) previous: Link<R>,
    inside: AtomicBool,
}

impl<R> Links<R> {
    pub(crate) const fn new() -> Self {
        Self {
            key: AtomicU64::new(0),
            child: Link::new(),
            next: Link::new(),
            previous: Link::new(),
            inside: AtomicBool::new(false),
        }
    }

    /// Resets the links to those of an element in no heap. The heap that held the element must no
    /// longer exist.
    pub(crate) fn forget(&self) {
        self.enter(false);
        self.child.set(None);
        self.next.set(None);
        self.previous.set(None);
    }

    /// Whether the element is in a heap.
    #[inline]
    pub(crate) fn is_set(&self) -> bool {
        self.inside.load(Ordering::Relaxed)
    }

    pub(crate) fn key(&self) -> u64 {
        self.key.load(Ordering::Relaxed)
    }

    pub(crate) fn set_key(&self, key: u64) {
        self.key.store(key, Ordering::Relaxed);
    }

    /// Records whether the element is in a queue; returns whether it was in one before.
    pub(crate) fn enter(&self, inside: bool) -> bool {
        let was = self.is_set();
        self.inside.store(inside, Ordering::Relaxed);
        was
    }
}

/// An element of heaps of kind `K`. It has links for that kind, and is in at most one heap of it.
pub(crate) trait Linked<K>: 'static + Sized {
    fn links(&self) -> &Links<Self>;
}

/// The kind of heap in which a virtual processor keeps its sleepers, by deadline.
#[derive(Debug)]
pub(crate) enum Sleeping {}

/// Elements ordered by key.
pub(crate) struct Heap<R: 'static, K> {
    root: Cell<Option<&'static R>>,
    kind: PhantomData<K>,
}

impl<K, R: Linked<K>> Heap<R, K> {
    pub(crate) const fn new() -> Self {
        Self { root: Cell::new(None), kind: PhantomData }
    }

    /// Forgets all elements: each [forgets](Links::forget) its links before it is added anywhere.
    pub(crate) fn clear(&self) {
        self.root.set(None);
    }

    /// The element with the least key.
    #[inline]
    pub(crate) fn first(&self) -> Option<&'static R> {
        self.root.get()
    }

    /// The least key.
    #[inline]
    pub(crate) fn least(&self) -> Option<u64> {
        self.root.get().map(|root| root.links().key())
    }

    /// Adds `element` under `key`.
    pub(crate) fn insert(&self, element: &'static R, key: u64) {
        let links = element.links();
        debug_assert!(!links.is_set(), "an element is in one heap at a time");
        links.forget();
        links.set_key(key);
        links.enter(true);
        self.root.set(Some(match self.root.get() {
            None => element,
            Some(root) => meld(root, element),
        }));
    }

    /// Removes and returns the element with the least key, if that key is not greater than `limit`.
    pub(crate) fn take_up_to(&self, limit: u64) -> Option<&'static R> {
        let root = self.root.get().filter(|root| root.links().key() <= limit)?;
        self.remove(root);
        Some(root)
    }

    /// Removes `element`; does nothing if it is in no heap.
    pub(crate) fn remove(&self, element: &'static R) {
        let links = element.links();
        if !links.enter(false) {
            return;
        }
        let orphans = merge_all(links.child.take());
        let is_root = self.root.get().is_some_and(|root| core::ptr::eq(root, element));
        if is_root {
            return self.root.set(orphans);
        }
        let (next, previous) = (links.next.take(), links.previous.take());
        if let Some(next) = next {
            next.links().previous.set(previous);
        }
        if let Some(previous) = previous {
            let links = previous.links();
            // The `previous` of a first child is its parent, whose `child` is this element.
            // Otherwise it is a sibling.
            if links.child.get().is_some_and(|child| core::ptr::eq(child, element)) {
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

/// Joins two heaps, given by their roots, which have no siblings.
fn meld<K, R: Linked<K>>(a: &'static R, b: &'static R) -> &'static R {
    let (parent, child) = if a.links().key() <= b.links().key() { (a, b) } else { (b, a) };
    let elder = parent.links().child.get();
    if let Some(elder) = elder {
        elder.links().previous.set(Some(child));
    }
    child.links().next.set(elder);
    child.links().previous.set(Some(parent));
    parent.links().child.set(Some(child));
    parent
}

/// Joins a list of siblings into one heap: first in pairs from the left, then the pairs from the
/// right.
fn merge_all<K, R: Linked<K>>(first: Option<&'static R>) -> Option<&'static R> {
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
