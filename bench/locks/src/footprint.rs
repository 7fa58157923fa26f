//! Paper 0, table 1: one function for each method, so that the size of its code can be read from
//! the symbols of this program.

use core::sync::atomic::AtomicU32;

use kyocho_tst::{Atomics, Lamport, Restartable, Rseq, SignalsBlocked, SystemCall, TestAndSet};

/// A test-and-set by a method, with all of it that is not a function of its own inlined.
macro_rules! footprint {
    ($($name:ident: $mechanism:ty),* $(,)?) => {
        $(
            #[unsafe(no_mangle)]
            #[inline(never)]
            pub extern "C" fn $name(mechanism: &$mechanism, word: &AtomicU32) -> u32 {
                mechanism.test_and_set(word).map_or(2, u32::from)
            }
        )*
    };
}

footprint! {
    footprint_restartable: Restartable,
    footprint_rseq: Rseq,
    footprint_atomics: Atomics,
    footprint_signals_blocked: SignalsBlocked,
    footprint_lamport: Lamport,
    footprint_system_call: SystemCall,
}

/// The part of the preemption handler for restartable sequences.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn footprint_restartable_handler(pc: usize) -> usize {
    kyocho_arch::restartable::rewind(pc).unwrap_or(pc)
}

/// The registration of a thread with rseq.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn footprint_rseq_registration() -> bool {
    kyocho_sys::rseq::register_thread().is_ok()
}

/// Keeps them all in the program.
#[used]
static ALL: [fn(); 8] = {
    use core::hint::black_box as keep;
    [
        || _ = keep(footprint_restartable as *const ()),
        || _ = keep(footprint_rseq as *const ()),
        || _ = keep(footprint_atomics as *const ()),
        || _ = keep(footprint_signals_blocked as *const ()),
        || _ = keep(footprint_lamport as *const ()),
        || _ = keep(footprint_system_call as *const ()),
        || _ = keep(footprint_restartable_handler as *const ()),
        || _ = keep(footprint_rseq_registration as *const ()),
    ]
};
