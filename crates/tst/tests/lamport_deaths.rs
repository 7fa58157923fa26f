//! Participants of Lamport's algorithm that die at any instruction: a signal handler steps through
//! the participant and ends its kernel thread, which leaves everything as it is. The others must
//! get in, one at a time, and the slots of the dead must be used again.
#![cfg(target_arch = "x86_64")]
#![expect(unsafe_code, reason = "installs a handler that steps through its thread and ends it")]
#![expect(clippy::unwrap_used, reason = "a test")]

use core::cell::Cell;
use core::ffi::c_void;
use std::sync::{Arc, Once};

use kyocho_sys::clock::monotonic_ns;
use kyocho_sys::prim::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use kyocho_sys::prim::thread::{Builder, yield_now};
use kyocho_sys::signal::{HandlerOptions, Info, Signal, install, send};
use kyocho_sys::task::{ThreadId, ThreadLife};
use kyocho_tst::{Lamport, Refusal, Section};

/// The flag of the processor that makes it trap after one instruction.
const STEP: i64 = 1 << 8;
/// Each dead thread leaves its stack behind.
const STACK_BYTES: usize = 64 << 10;
const WATCHDOG_NS: u64 = 120_000_000_000;

thread_local! {
    /// Instructions until this thread dies; 0 if it does not.
    static LEFT: Cell<u64> = const { Cell::new(0) };
}

unsafe extern "C" fn on_step(_: i32, _: *mut Info, context: *mut c_void) {
    let context = context.cast::<libc::ucontext_t>();
    // SAFETY: the context of this handler.
    let flags = unsafe { &mut (*context).uc_mcontext.gregs[libc::REG_EFL as usize] };
    match LEFT.get() {
        0 => *flags &= !STEP,
        1 => {
            // SAFETY: ends this thread at once. Its stack stays allocated.
            unsafe { libc::syscall(libc::SYS_exit, 0) };
        }
        left => {
            LEFT.set(left - 1);
            *flags |= STEP;
        }
    }
}

/// Makes the calling thread die after so many more instructions.
fn die_after(instructions: u64) {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        // SAFETY: the handler uses its context, a word of its thread and one system call.
        unsafe { install(Signal::TRAP, on_step, HandlerOptions::default()) }.unwrap();
    });
    LEFT.set(instructions);
    send(ThreadId::current(), Signal::TRAP).unwrap();
}

fn live_on() {
    LEFT.set(0);
}

/// Starts a thread that is never joined, because it may die.
fn start(body: impl FnOnce() + Send + 'static) {
    drop(Builder::new().stack_size(STACK_BYTES).spawn(body).unwrap());
}

/// Waits for a condition, under a watchdog.
fn until(what: &str, condition: impl Fn() -> bool) {
    let watchdog_ns = monotonic_ns() + WATCHDOG_NS;
    while !condition() {
        assert!(monotonic_ns() < watchdog_ns, "not in time: {what}");
        yield_now();
    }
}

/// A section, and the thread that is inside.
struct Shared {
    section: Lamport,
    inside: AtomicU32,
    intrusions: AtomicUsize,
}

impl Shared {
    fn new(participants_max: usize) -> Arc<Self> {
        let section = Lamport::new(participants_max);
        Arc::new(Self { section, inside: AtomicU32::new(0), intrusions: AtomicUsize::new(0) })
    }

    /// Enters, looks whether another thread comes in, and leaves.
    fn visit(&self) {
        let me = ThreadLife::remembered().thread().number();
        let ticket = loop {
            match self.section.enter() {
                Ok(ticket) => break ticket,
                // The kernel has not removed a thread yet that has ended.
                Err(refusal) => assert_eq!(refusal, Refusal::Full),
            }
            yield_now();
        };
        self.inside.store(me, Ordering::Relaxed);
        for _ in 0..6 {
            if self.inside.load(Ordering::Relaxed) != me {
                self.intrusions.fetch_add(1, Ordering::Relaxed);
            }
        }
        self.section.leave(ticket);
    }
}

/// Runs `body` on a thread that dies after so many instructions of it, which follow `prepare`.
/// Returns whether `body` ended before.
fn run_and_die(
    instructions: u64,
    prepare: impl FnOnce() + Send + 'static,
    body: impl FnOnce() + Send + 'static,
) -> bool {
    let (life, has_completed) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
    let (own_life, completed) = (Arc::clone(&life), Arc::clone(&has_completed));
    start(move || {
        prepare();
        own_life.store(ThreadLife::remembered().word(), Ordering::Release);
        die_after(instructions);
        body();
        live_on();
        completed.store(true, Ordering::Release);
    });
    until("the death", || {
        let word = life.load(Ordering::Acquire);
        word != 0 && ThreadLife::from_word(word).has_ended()
    });
    has_completed.load(Ordering::Acquire)
}

#[test]
fn participant_that_dies_at_any_instruction_is_finished() {
    let (mut instruction, mut adopted) = (1, 0);
    loop {
        // Two slots: the second visitor needs that of the dead one or of the first.
        let shared = Shared::new(2);
        let victim = Arc::clone(&shared);
        let has_completed = run_and_die(instruction, || {}, move || victim.visit());
        for visitor in 1..=2 {
            let done = Arc::new(AtomicBool::new(false));
            let (visitors, ended) = (Arc::clone(&shared), Arc::clone(&done));
            start(move || {
                visitors.visit();
                ended.store(true, Ordering::Release);
            });
            let what = format!("visitor {visitor} after a death at instruction {instruction}");
            until(&what, || done.load(Ordering::Acquire));
        }
        adopted += shared.section.adopted();
        if has_completed {
            break;
        }
        instruction += 1;
    }
    assert!(adopted > 20, "only {adopted} of {instruction} died where they were in the way");
}

/// Participants that live on, and that die one after the other.
const SURVIVORS: usize = 3;
const VICTIMS: usize = 100;
const SEED: u64 = 2001;

#[test]
fn participants_that_die_in_contention_let_no_two_in_and_block_none() {
    let shared = Shared::new(SURVIVORS + 2);
    let stop = Arc::new(AtomicBool::new(false));
    let visits: Vec<_> = (0..SURVIVORS).map(|_| Arc::new(AtomicUsize::new(0))).collect();
    for visits in &visits {
        let (shared, stop, visits) = (Arc::clone(&shared), Arc::clone(&stop), Arc::clone(visits));
        start(move || {
            while !stop.load(Ordering::Relaxed) {
                shared.visit();
                visits.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
    let mut random = SEED;
    for victim in 0..VICTIMS {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let instructions = 1 + (random >> 33) % 3000;
        let (first, own) = (Arc::clone(&shared), Arc::clone(&shared));
        // The first visit takes a slot.
        let visit_for_ever = move || {
            loop {
                own.visit();
            }
        };
        run_and_die(instructions, move || first.visit(), visit_for_ever);
        // Each survivor must get in after this death.
        for (survivor, visits) in visits.iter().enumerate() {
            let before = visits.load(Ordering::Relaxed);
            let what = format!("survivor {survivor} after victim {victim}, seed {SEED}");
            until(&what, || visits.load(Ordering::Relaxed) > before);
        }
    }
    stop.store(true, Ordering::Relaxed);
    assert_eq!(shared.intrusions.load(Ordering::Relaxed), 0, "seed {SEED}");
    // Each victim had a slot, of which there are two for them.
    let adopted = shared.section.adopted();
    assert!(adopted > VICTIMS / 10, "only {adopted} of {VICTIMS} were finished, seed {SEED}");
}
