//! The pool of kernel threads that wait for a virtual processor.
//!
//! A lock-free stack. A thread that hands on a virtual processor may be of the lowest class, and be
//! preempted by the host in the middle. No other thread may have to wait for it. The most recent
//! thread is taken first: its stack is in the cache.
//!
//! # The reserve
//! Beside the stack, the pool keeps one thread that runs no microprocess, the *reserve*. It is
//! needed if the holder sleeps, the stack is empty, and the maker makes no threads.
//!
//! The maker may then wait for a lock of the allocator that a microprocess of this virtual
//! processor holds. That microprocess was preempted and has a kernel thread of its own. It needs no
//! spare thread, but some thread must hand it the virtual processor. The reserve does so (see
//! [`dispatch`](crate::thread::dispatch)) and returns to the pool. It cannot be used up, because it
//! never runs code that may sleep.
//!
//! **Invariant:** a thread is put onto the stack only if there is a reserve. A preemption takes a
//! thread from the stack. So after a preemption there is a reserve, in the pool or on duty.
#![expect(unsafe_code, reason = "packs a pointer and a tag into one word")]

use core::ptr;

use kyocho_sys::prim::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

use crate::processor::kernel_thread::KernelThread;

/// A head is a record's address, divided by its alignment, below a tag. The tag changes with every
/// operation, so that a head that was removed and added again is not mistaken for one that stayed.
const ADDRESS_BITS: u32 = 41;
const ALIGNMENT_SHIFT: u32 = 6;

/// The pool of one virtual processor.
#[derive(Debug)]
pub(crate) struct Pool {
    head: AtomicU64,
    size: AtomicU32,
    /// The reserve. Null while it is on duty, and before there is one.
    reserve: AtomicPtr<KernelThread>,
}

fn pack(thread: *const KernelThread, tag: u64) -> u64 {
    thread.expose_provenance() as u64 >> ALIGNMENT_SHIFT | tag << ADDRESS_BITS
}

fn address(head: u64) -> *mut KernelThread {
    let low = head & ((1 << ADDRESS_BITS) - 1);
    ptr::with_exposed_provenance_mut((low << ALIGNMENT_SHIFT) as usize)
}

impl Pool {
    pub(crate) const fn new() -> Self {
        Self {
            head: AtomicU64::new(0),
            size: AtomicU32::new(0),
            reserve: AtomicPtr::new(ptr::null_mut()),
        }
    }

    /// The approximate number of waiting threads, without the reserve.
    pub(crate) fn size(&self) -> u32 {
        self.size.load(Ordering::Relaxed)
    }

    /// Adds `thread`, which then waits for a virtual processor. It becomes the reserve if there is
    /// none.
    pub(crate) fn put(&self, thread: &'static KernelThread) {
        let (none, entry) = (ptr::null_mut(), ptr::from_ref(thread).cast_mut());
        let is_reserve = self.reserve.load(Ordering::Relaxed).is_null()
            && self
                .reserve
                .compare_exchange(none, entry, Ordering::Release, Ordering::Relaxed)
                .is_ok();
        if !is_reserve {
            self.push(thread);
        }
    }

    fn push(&self, thread: &'static KernelThread) {
        let mut head = self.head.load(Ordering::Relaxed);
        loop {
            thread.pool_next.store(address(head), Ordering::Relaxed);
            let new = pack(thread, (head >> ADDRESS_BITS) + 1);
            match self.head.compare_exchange_weak(head, new, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => break,
                Err(now) => head = now,
            }
        }
        self.size.fetch_add(1, Ordering::Relaxed);
    }

    /// Removes and returns the reserve: it runs no microprocess, and returns by [`put`](Self::put).
    pub(crate) fn take_reserve(&self) -> Option<&'static KernelThread> {
        let reserve = self.reserve.swap(ptr::null_mut(), Ordering::Acquire);
        // SAFETY: null or a kernel thread's record, which is never freed.
        unsafe { reserve.as_ref() }
    }

    /// Removes and returns the thread that was added last; never the reserve.
    pub(crate) fn take(&self) -> Option<&'static KernelThread> {
        let mut head = self.head.load(Ordering::Acquire);
        loop {
            // SAFETY: null or a kernel thread's record, which is never freed.
            let thread = unsafe { address(head).as_ref() }?;
            let next = thread.pool_next.load(Ordering::Relaxed);
            let new = pack(next, (head >> ADDRESS_BITS) + 1);
            match self.head.compare_exchange_weak(head, new, Ordering::Acquire, Ordering::Acquire) {
                Ok(_) => {
                    self.size.fetch_sub(1, Ordering::Relaxed);
                    return Some(thread);
                }
                Err(now) => head = now,
            }
        }
    }
}
