//! The methods by name, and the holders of their words.

use core::ptr::NonNull;

use kyocho_sys::scheduling::{CpuSet, affinity, set_affinity};
use kyocho_sys::task::ThreadId;
use kyocho_tst::{Restartable, Rseq};

/// The names on the command line and in the report.
pub const NAMES: [&str; 6] =
    ["restartable", "rseq", "atomics", "signals-blocked", "lamport", "system-call"];

/// Confines the calling thread, and those that it starts, to the last CPU that it may use, because
/// others use the first.
pub fn confine_to_one_cpu() {
    let me = ThreadId::current();
    let allowed = affinity(me).expect("a thread knows its CPUs");
    let last = allowed.iter().last().expect("it runs on one");
    set_affinity(me, &CpuSet::single(last)).expect("it is allowed there");
}

/// The sequences of the CPU that the calling thread is confined to.
pub fn rseq() -> Rseq {
    match Rseq::current() {
        Ok(rseq) => rseq,
        Err(why) => unsupported(&why.to_string()),
    }
}

/// The sequences of a virtual processor that only the calling thread claims to hold.
pub fn restartable() -> Restartable {
    let vp = NonNull::dangling();
    // SAFETY: no other thread uses words of this virtual processor.
    unsafe { kyocho_arch::set_current_vp(vp.as_ptr()) };
    Restartable::new(vp)
}

/// Ends the program with a line that says why.
pub fn unsupported(why: &str) -> ! {
    println!("{}", serde_json::json!({ "unsupported": why }));
    std::process::exit(0)
}
