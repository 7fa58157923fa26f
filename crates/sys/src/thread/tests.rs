//! Threads on stacks that the caller provides.
#![expect(unsafe_code, reason = "provides a stack")]

use core::ffi::c_void;
use core::ptr::NonNull;

use super::start_on;
use crate::mapping::Mapping;
use crate::prim::atomic::{AtomicUsize, Ordering};

extern "C" fn leave_address(argument: *mut c_void) -> *mut c_void {
    let local = 7_u8;
    // SAFETY: the test passes an atomic that outlives the thread.
    let place = unsafe { &*argument.cast::<AtomicUsize>() };
    place.store(&raw const local as usize, Ordering::Release);
    argument
}

#[test]
fn a_thread_runs_on_the_stack_it_is_given() {
    const BYTES: usize = 256 << 10;
    let memory = Mapping::reserve(BYTES).unwrap();
    let stack = NonNull::new(core::ptr::with_exposed_provenance_mut::<u8>(memory.base())).unwrap();
    let place = AtomicUsize::new(0);
    let argument = (&raw const place).cast_mut().cast();
    for _ in 0..3 {
        place.store(0, Ordering::Release);
        // SAFETY: the mapping lives until the thread is joined, and is used by one thread at a
        // time.
        unsafe { start_on(stack, BYTES, leave_address, argument) }.unwrap().join();
        let local = place.load(Ordering::Acquire);
        assert!((memory.base()..memory.base() + BYTES).contains(&local));
    }
}
