//! Interrupts sequences after each of their instructions by a signal handler. In that handler, a
//! preemption arrives or the thread sleeps in the kernel. No addition may be lost.
#![expect(unsafe_code, reason = "single-steps through a sequence; changes the interrupted context")]

use core::ffi::c_void;
use core::ptr::NonNull;

use kyocho_arch::{pc_of, restartable};
use kyocho_sys::prim::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering};
use kyocho_sys::signal::{self, HandlerOptions, Info, Signal};
use kyocho_sys::task::ThreadId;

use std::io::{Read, Write};

use crate::processor::vp::{Vp, attention};
use crate::runtime::control::tests::watchdog::under_watchdog;
use crate::schedule::mask;
use crate::{Detection, Runtime};
use crate::{spawn, yield_now};

/// The processor flag that makes it trap after each instruction.
const TRAP_FLAG: i64 = 0x100;
/// An upper bound for the number of instructions of a sequence.
const INSTRUCTIONS_MAX: u32 = 64;

/// The word to which both microprocesses add with sequences.
static WORD: AtomicUsize = AtomicUsize::new(0);
/// How many instructions of the sequence have been stepped over, and the one after which it is
/// interrupted.
static STEPPED: AtomicU32 = AtomicU32::new(0);
static TARGET: AtomicU32 = AtomicU32::new(0);
/// The virtual processor on which the stepped microprocess runs.
static PROCESSOR: AtomicPtr<Vp> = AtomicPtr::new(core::ptr::null_mut());
/// What the handler does at that instruction.
static INTERRUPTION: AtomicPtr<()> = AtomicPtr::new(core::ptr::null_mut());

/// A preemption arrives.
fn preempt() {
    // SAFETY: set before the stepping begins, to a virtual processor, which is never freed.
    let vp = unsafe { &*PROCESSOR.load(Ordering::SeqCst) };
    vp.attention.fetch_or(attention::PREEMPT, Ordering::SeqCst);
    signal::send(ThreadId::current(), Signal::URG).unwrap();
}

/// The handler sleeps long enough to be noticed.
fn sleep() {
    for _ in 0..10 {
        let time = libc::timespec { tv_sec: 0, tv_nsec: 1_000_000 };
        // SAFETY: reads one timespec.
        unsafe { libc::syscall(libc::SYS_nanosleep, &raw const time, 0) };
    }
}

unsafe extern "C" fn on_step(_signal: i32, _info: *mut Info, context: *mut c_void) {
    // SAFETY: the kernel passes the interrupted context.
    let in_the_middle = restartable::is_in_the_middle(unsafe { pc_of(context) });
    // SAFETY: as above; no other reference to the context exists now.
    let context = unsafe { &mut *context.cast::<libc::ucontext_t>() };
    let flags = &mut context.uc_mcontext.gregs[libc::REG_EFL as usize];
    *flags |= TRAP_FLAG;
    let stepped = STEPPED.load(Ordering::SeqCst);
    if in_the_middle {
        STEPPED.store(stepped + 1, Ordering::SeqCst);
        if stepped == TARGET.load(Ordering::SeqCst) {
            *flags &= !TRAP_FLAG;
            let interruption = INTERRUPTION.load(Ordering::SeqCst);
            // SAFETY: one of the functions above.
            let interruption = unsafe { core::mem::transmute::<*mut (), fn()>(interruption) };
            interruption();
        }
    } else if stepped > 0 {
        // The sequence has ended.
        *flags &= !TRAP_FLAG;
    }
}

/// Adds one, with a sequence of the caller's virtual processor.
fn add() {
    loop {
        let Some(vp) = NonNull::new(kyocho_arch::current_vp()) else {
            yield_now();
            continue;
        };
        // SAFETY: a static, changed only by sequences of this virtual processor, the only one.
        if unsafe { restartable::fetch_add(vp, WORD.as_ptr(), 1) }.is_ok() {
            return;
        }
        // Refused: the caller has just come back from the kernel, without a virtual processor.
        yield_now();
    }
}

/// Interrupts an addition after its instruction number `target`, while another microprocess waits
/// to add. Returns whether there was such an instruction.
fn interrupt(target: u32, interruption: fn()) -> bool {
    WORD.store(0, Ordering::SeqCst);
    STEPPED.store(0, Ordering::SeqCst);
    TARGET.store(target, Ordering::SeqCst);
    INTERRUPTION.store(interruption as *mut (), Ordering::SeqCst);
    let neighbour = spawn(add);
    // Stepping begins here.
    signal::send(ThreadId::current(), Signal::TRAP).unwrap();
    add();
    let there_was = STEPPED.load(Ordering::SeqCst) > target;
    neighbour.join().unwrap();
    assert_eq!(WORD.load(Ordering::SeqCst), 2, "interrupted after instruction {target}");
    there_was
}

/// Interrupts additions after every instruction, with a handler on the stack of the microprocess
/// and with one on the kernel thread's handler stack.
fn interrupt_everywhere(detection: Detection, interruption: fn()) {
    for (on_alternate_stack, reentrant) in
        [(false, false), (false, true), (true, false), (true, true)]
    {
        let manner = HandlerOptions { on_alternate_stack, reentrant, ..HandlerOptions::default() };
        // SAFETY: the handler allocates nothing and takes no lock.
        let before = unsafe { signal::install(Signal::TRAP, on_step, manner) }.unwrap();
        let runtime = Runtime::builder().virtual_processors(1).detection(detection).build();
        runtime.run(|| interrupt_each(interruption)).unwrap();
        // SAFETY: the former handler is as valid as it was.
        unsafe { signal::restore(Signal::TRAP, &before) }.unwrap();
    }
}

/// Interrupts an addition after each of its instructions in turn.
fn interrupt_each(interruption: fn()) {
    let section = mask();
    let vp = section.vp;
    section.leave();
    PROCESSOR.store(core::ptr::from_ref(vp).cast_mut(), Ordering::SeqCst);
    while vp.pool.size() == 0 {
        yield_now();
    }
    let instructions = (0..INSTRUCTIONS_MAX).take_while(|&at| interrupt(at, interruption));
    let count = instructions.count();
    assert!(count > 0 && count < INSTRUCTIONS_MAX as usize, "{count} instructions");
}

#[test]
fn preemption_in_a_handler_above_a_sequence_loses_nothing() {
    under_watchdog("hidden_preempted", || interrupt_everywhere(Detection::Off, preempt));
    under_watchdog("hidden_asleep", || interrupt_everywhere(Detection::Monitor, sleep));
}

/// A handler that has ended leaves such words in the stack, and a later frame may cover them without
/// writing them.
#[test]
fn a_word_that_equals_an_address_in_a_sequence_keeps_no_processor() {
    under_watchdog("hidden_stale", || {
        let runtime =
            Runtime::builder().virtual_processors(1).detection(Detection::Monitor).build();
        runtime.run(sleep_above_a_stale_word).unwrap();
    });
}

/// Sleeps until another microprocess wakes it, which needs the virtual processor.
fn sleep_above_a_stale_word() {
    let in_the_middle = restartable::extent().find(|pc| restartable::is_in_the_middle(*pc));
    let words = [in_the_middle.unwrap(); 8];
    core::hint::black_box(&words);
    let (mut reader, mut writer) = std::io::pipe().unwrap();
    let neighbour = spawn(move || writer.write_all(b"x").unwrap());
    reader.read_exact(&mut [0; 1]).unwrap();
    core::hint::black_box(&words);
    neighbour.join().unwrap();
}
