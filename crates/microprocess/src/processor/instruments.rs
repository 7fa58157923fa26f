//! What Valgrind and `ThreadSanitizer` are told, where one of them watches the program.
//!
//! * **Valgrind** gets to know each stack once, when its memory is cut.
//! * **`ThreadSanitizer`** has a *fiber* for each microprocess and follows every switch. A switch alone orders nothing for it: two
//!   microprocesses of one virtual processor race as those of two do. What orders is told by [`release`] and [`acquire`], which
//!   every guarded object, spawn, join and unpark calls, with an address that both sides know.
//!
//! Where none of them is, each call here is one load and a branch that is not taken.
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
        // SAFETY: asks for nothing.
        BASE.set(unsafe { current() });
    }
}

/// The free slot of `record` gets a microprocess that the caller spawns: a new fiber, for which has happened what has for the caller.
/// What the slot's former microprocess did on the same stack has happened for both.
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
    // SAFETY: the lowest word of a stack that nobody runs on; zero before its first use.
    let former = unsafe { place.read() };
    if !former.is_null() {
        // SAFETY: its microprocess has ended, and left it.
        unsafe { destroy(former) };
    }
    // SAFETY: asks for nothing.
    let fiber = unsafe { create(0) };
    // SAFETY: as above.
    unsafe { place.write(fiber) };
    release(record);
}

/// Where the fiber of a microprocess is kept: in the lowest word of its stack, the last one before the guard page.
fn fiber_of(record: &'static Record) -> *mut *mut c_void {
    record.slot.get().wrapping_add(PAGE_BYTES).cast()
}

/// The caller is about to switch to the stack of `next`.
#[inline(always)]
pub(crate) fn leave_for(next: &'static Record) {
    if let Some(switch) = thread_sanitizer().switch_to_fiber {
        // SAFETY: written when the microprocess was spawned, and as long as that lives its fiber does.
        let fiber = unsafe { fiber_of(next).read() };
        // SAFETY: the fiber of the stack that is switched to; 1: the switch orders nothing.
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

/// Not inlined: the thread-local value is that of the kernel thread that calls now.
#[cold]
#[inline(never)]
fn leave_for_this_base() {
    if let Some(switch) = thread_sanitizer().switch_to_fiber {
        // SAFETY: as in `leave_for`.
        unsafe { switch(BASE.get(), 1) };
    }
}

/// The caller begins, on its own stack.
#[inline(always)]
pub(crate) fn begin(record: &'static Record) {
    acquire(record);
}

/// What the caller has done so far has happened for who [acquires](acquire) the same address afterwards.
#[inline(always)]
pub fn release<T: ?Sized>(at: &T) {
    if let Some(release) = thread_sanitizer().release {
        // SAFETY: an address that serves as a name.
        unsafe { release(ptr::from_ref(at).cast_mut().cast()) };
    }
}

/// See [`release`].
#[inline(always)]
pub fn acquire<T: ?Sized>(at: &T) {
    if let Some(acquire) = thread_sanitizer().acquire {
        // SAFETY: an address that serves as a name.
        unsafe { acquire(ptr::from_ref(at).cast_mut().cast()) };
    }
}
