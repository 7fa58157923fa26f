//! What does it cost to mask and unmask events, with and without a pending event, in each of two
//! ways of delivery?
//!
//! * The paper's (§3.3.2): the mask is in a page. The source of an event write-protects the page,
//!   so that the store which unmasks events faults. The fault handler delivers the event, and makes
//!   the page writable again. On Linux that is a signal handler, and the source calls `mprotect`.
//! * A pending word: the source of an event sets it; unmasking is a store and a load of that word.
//!
//! Baseline: two stores and nothing else. Checked: each event is delivered once. Unit: ns. 31
//! repeats, all subjects one after the other in each; median, 10th and 90th percentile.
#![expect(unsafe_code, reason = "protects a page and handles the fault")]
#![expect(clippy::print_stdout, reason = "a bench prints what it timed")]

use core::ffi::{c_int, c_void};
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering, compiler_fence};

use kyocho_sys::clock::monotonic_ns;

const REPEATS: usize = 31;
const QUIET: usize = 1_000_000;
const WITH_EVENT: usize = 10_000;
const PAGE_BYTES: usize = 4096;

/// The page with the mask.
static PAGE: AtomicPtr<AtomicU32> = AtomicPtr::new(ptr::null_mut());
static MASK: AtomicU32 = AtomicU32::new(0);
static PENDING: AtomicU32 = AtomicU32::new(0);
static DELIVERED: AtomicUsize = AtomicUsize::new(0);

/// Never inlined, so that each way pays for the same call.
#[inline(never)]
fn deliver() {
    DELIVERED.fetch_add(1, Ordering::Relaxed);
}

fn protect(protection: c_int) {
    let page = PAGE.load(Ordering::Relaxed).cast();
    // SAFETY: the page belongs to this program and stays mapped.
    assert_eq!(unsafe { libc::mprotect(page, PAGE_BYTES, protection) }, 0);
}

unsafe extern "C" fn on_fault(_signal: c_int, info: *mut libc::siginfo_t, _context: *mut c_void) {
    // SAFETY: the kernel passes it with the signal.
    let info = unsafe { &*info };
    // SAFETY: a fault has an address.
    let address = unsafe { info.si_addr() };
    if address.cast() != PAGE.load(Ordering::Relaxed) {
        // SAFETY: ends the process because of another fault.
        unsafe { libc::abort() };
    }
    protect(libc::PROT_READ | libc::PROT_WRITE);
    deliver();
}

fn prepare() {
    let (protection, flags) =
        (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: asks for a new page.
    let page = unsafe { libc::mmap(ptr::null_mut(), PAGE_BYTES, protection, flags, -1, 0) };
    assert_ne!(page, libc::MAP_FAILED, "memory for a page");
    PAGE.store(page.cast(), Ordering::Relaxed);
    // SAFETY: all zero is a valid value.
    let mut action: libc::sigaction = unsafe { core::mem::zeroed() };
    action.sa_sigaction = on_fault as *const () as usize;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_NODEFER;
    // SAFETY: the handler uses atomics and a page of this program.
    let set = unsafe { libc::sigaction(libc::SIGSEGV, &raw const action, ptr::null_mut()) };
    assert_eq!(set, 0);
}

#[inline(always)]
fn section(mask: &AtomicU32) {
    mask.store(1, Ordering::Relaxed);
    compiler_fence(Ordering::SeqCst);
    mask.store(0, Ordering::Relaxed);
    compiler_fence(Ordering::SeqCst);
}

fn plain() {
    section(&MASK);
}

fn by_page() {
    // SAFETY: set by `prepare`, mapped for good, aligned.
    section(unsafe { &*PAGE.load(Ordering::Relaxed) });
}

fn by_word() {
    section(&MASK);
    if PENDING.load(Ordering::Relaxed) != 0 {
        PENDING.swap(0, Ordering::Acquire);
        deliver();
    }
}

fn page_with_event() {
    // SAFETY: as above.
    let mask = unsafe { &*PAGE.load(Ordering::Relaxed) };
    mask.store(1, Ordering::Relaxed);
    compiler_fence(Ordering::SeqCst);
    protect(libc::PROT_READ);
    mask.store(0, Ordering::Relaxed);
    compiler_fence(Ordering::SeqCst);
}

fn word_with_event() {
    MASK.store(1, Ordering::Relaxed);
    compiler_fence(Ordering::SeqCst);
    PENDING.fetch_or(1, Ordering::SeqCst);
    MASK.store(0, Ordering::Relaxed);
    compiler_fence(Ordering::SeqCst);
    if PENDING.load(Ordering::Relaxed) != 0 {
        PENDING.swap(0, Ordering::Acquire);
        deliver();
    }
}

/// A way to mask and unmask. How often it is timed in one repeat, and how many events occur in
/// that.
struct Subject {
    name: &'static str,
    way: fn(),
    rounds: usize,
    events: usize,
}

const SUBJECTS: [Subject; 5] = [
    Subject { name: "two stores", way: plain, rounds: QUIET, events: 0 },
    Subject { name: "page, quiet", way: by_page, rounds: QUIET, events: 0 },
    Subject { name: "word, quiet", way: by_word, rounds: QUIET, events: 0 },
    Subject {
        name: "page, an event",
        way: page_with_event,
        rounds: WITH_EVENT,
        events: WITH_EVENT,
    },
    Subject {
        name: "word, an event",
        way: word_with_event,
        rounds: WITH_EVENT,
        events: WITH_EVENT,
    },
];

impl Subject {
    fn time_ns(&self) -> f64 {
        DELIVERED.store(0, Ordering::Relaxed);
        let way = core::hint::black_box(self.way);
        let start_ns = monotonic_ns();
        (0..self.rounds).for_each(|_| way());
        let elapsed_ns = monotonic_ns() - start_ns;
        let delivered = DELIVERED.load(Ordering::Relaxed);
        assert_eq!(delivered, self.events, "{}: each event is delivered once", self.name);
        elapsed_ns as f64 / self.rounds as f64
    }
}

fn main() {
    prepare();
    let mut times = SUBJECTS.map(|_| Vec::with_capacity(REPEATS));
    for _ in 0..REPEATS {
        for (subject, times) in SUBJECTS.iter().zip(&mut times) {
            times.push(subject.time_ns());
        }
    }
    for (subject, times) in SUBJECTS.iter().zip(&mut times) {
        times.sort_by(f64::total_cmp);
        let [low, median, high] = [REPEATS / 10, REPEATS / 2, REPEATS * 9 / 10].map(|at| times[at]);
        println!("{:<16} {median:9.2} ns  [{low:.2}..{high:.2}]", subject.name);
    }
}
