//! Reports to Valgrind and `ThreadSanitizer`, if one of them checks the program.
//!
//! * **Valgrind** receives the addresses of each stack once, when the stack's memory is prepared.
//! * **`ThreadSanitizer`** has a *fiber* for each microprocess, and receives every switch. For it,
//!   a switch alone orders nothing: two microprocesses of one virtual processor race just as those
//!   of two do. [`release`] and [`acquire`] report ordering, with an address that both sides know.
//!   Guarded objects, spin mutexes, spawn, join and unpark call them.
//!
//! Without either of them, each call here is one load and a branch that is not taken.
#![expect(unsafe_code, reason = "calls the runtime of a sanitizer")]

use core::cell::Cell;
use core::ffi::c_void;
use core::ptr;

pub(crate) use kyocho_arch::instruments::register_stack;
use kyocho_arch::instruments::thread_sanitizer;
use kyocho_sys::memory::PAGE_BYTES;

use crate::processor::record::Record;

thread_local! {
    /// The fiber of the base stack.
    static BASE: Cell<*mut c_void> = const { Cell::new(ptr::null_mut()) };
}

/// The calling kernel thread begins to dispatch, on its base stack.
pub(crate) fn begin_base() {
    if let Some(current) = thread_sanitizer().current_fiber {
        // SAFETY: has no requirements.
        BASE.set(unsafe { current() });
    }
}

/// The free slot of `record` is used for a microprocess that the caller spawns. Makes a new fiber,
/// ordered after everything that the caller has done, and after what the slot's former microprocess
/// did on the same stack.
#[inline(always)]
pub(crate) fn spawn(record: &'static Record) {
    if thread_sanitizer().create_fiber.is_some() {
        spawn_fiber(record);
    }
}

#[cold]
#[inline(never)]
fn spawn_fiber(record: &'static Record) {
    let thread = thread_sanitizer();
    let (Some(create), Some(destroy)) = (thread.create_fiber, thread.destroy_fiber) else { return };
    acquire(record);
    let place = fiber_of(record);
    // SAFETY: the lowest word of a stack on which nothing runs. It is zero before the stack's first
    // use.
    let former = unsafe { place.read() };
    if !former.is_null() {
        // SAFETY: its microprocess has ended and will not use the fiber again.
        unsafe { destroy(former) };
    }
    // SAFETY: has no requirements.
    let fiber = unsafe { create(0) };
    // SAFETY: as above.
    unsafe { place.write(fiber) };
    release(record);
}

/// Where the fiber of a microprocess is stored: in the lowest word of its stack, next to the guard
/// page.
fn fiber_of(record: &'static Record) -> *mut *mut c_void {
    record.slot.get().wrapping_add(PAGE_BYTES).cast()
}

/// The caller is about to switch to the stack of `next`.
#[inline(always)]
pub(crate) fn leave_for(next: &'static Record) {
    if let Some(switch) = thread_sanitizer().switch_to_fiber {
        // SAFETY: written when the microprocess was spawned. The fiber lives as long as the
        // microprocess.
        let fiber = unsafe { fiber_of(next).read() };
        // SAFETY: the fiber of the stack that is switched to. The flag 1 says that the switch
        // orders nothing.
        unsafe { switch(fiber, 1) };
    }
}

/// The caller is about to switch to the base of its kernel thread.
#[inline(always)]
pub(crate) fn leave_for_base() {
    if thread_sanitizer().switch_to_fiber.is_some() {
        leave_for_this_base();
    }
}

/// Not inlined, so that the thread-local value is that of the present kernel thread.
#[cold]
#[inline(never)]
fn leave_for_this_base() {
    if let Some(switch) = thread_sanitizer().switch_to_fiber {
        // SAFETY: as in `leave_for`.
        unsafe { switch(BASE.get(), 1) };
    }
}

/// The calling microprocess begins, on its own stack.
#[inline(always)]
pub(crate) fn begin(record: &'static Record) {
    acquire(record);
}

/// Everything the caller has done so far happens before a later [`acquire`] of the same address.
#[inline(always)]
pub fn release<T: ?Sized>(at: &T) {
    if let Some(release) = thread_sanitizer().release {
        // SAFETY: the address serves as a name only.
        unsafe { release(ptr::from_ref(at).cast_mut().cast()) };
    }
}

/// See [`release`].
#[inline(always)]
pub fn acquire<T: ?Sized>(at: &T) {
    if let Some(acquire) = thread_sanitizer().acquire {
        // SAFETY: the address serves as a name only.
        unsafe { acquire(ptr::from_ref(at).cast_mut().cast()) };
    }
}
