//! How long a slow page fault keeps other threads from running. The faults are handled with
//! `userfaultfd(2)` by a kernel thread, after a delay.
//!
//! ```text
//!   one thread:     notes the time, touches a page ───── waits ─────┐ runs on, yields until the time was taken
//!   its neighbour:  yields ........................ takes the time, measures
//!   kernel thread:                          fault ──── LATE ──── fills the page
//! ```

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::{check, emit, unsupported};

/// The delay of a page.
const LATE: Duration = Duration::from_millis(2);
const PAGE_BYTES: usize = 4096;
/// `struct uffdio_api`, `uffdio_register`, `uffdio_zeropage` of linux/userfaultfd.h, as words; and
/// their `ioctl`s.
const UFFDIO_API: libc::Ioctl = 0xc018_aa3f;
const UFFDIO_REGISTER: libc::Ioctl = 0xc020_aa00;
const UFFDIO_ZEROPAGE: libc::Ioctl = 0xc020_aa04;
const UFFD_API: u64 = 0xaa;
const UFFD_USER_MODE_ONLY: i32 = 1;
const REGISTER_MODE_MISSING: u64 = 1;
/// Words of `struct uffd_msg`; the third is the address.
const MESSAGE_WORDS: usize = 4;

/// Pages that arrive late, and the delay that this causes for a neighbour.
pub struct Stall {
    base: usize,
    pages: usize,
    since: Instant,
    /// Start of the fault in nanoseconds since `since`; 0 once the neighbour has noticed it.
    began_ns: AtomicU64,
    samples_us: Mutex<Vec<f64>>,
}

impl Stall {
    /// `None`, with a message, if the host does not permit it.
    pub fn new(pages: usize) -> Option<&'static Self> {
        let flags = libc::O_CLOEXEC | UFFD_USER_MODE_ONLY;
        // SAFETY: takes a number, makes a descriptor.
        let descriptor = unsafe { libc::syscall(libc::SYS_userfaultfd, flags) } as i32;
        if descriptor < 0 {
            unsupported("page_fault", "userfaultfd is not permitted here");
            return None;
        }
        let bytes = pages * PAGE_BYTES;
        let (protection, kind) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: maps memory at an address of the kernel's choice.
        let memory = unsafe { libc::mmap(std::ptr::null_mut(), bytes, protection, kind, -1, 0) };
        check(memory != libc::MAP_FAILED, || "no memory".into());
        let base = memory.expose_provenance();
        // With huge pages, one fault would bring many pages.
        // SAFETY: this function's mapping.
        let _as_they_are = unsafe { libc::madvise(memory, bytes, libc::MADV_NOHUGEPAGE) };
        let mut api = [UFFD_API, 0, 0];
        let mut register = [base as u64, bytes as u64, REGISTER_MODE_MISSING, 0];
        // SAFETY: the kernel reads and writes three words.
        let spoken = unsafe { libc::ioctl(descriptor, UFFDIO_API, &raw mut api) } == 0;
        // SAFETY: the kernel reads and writes four words.
        let there = unsafe { libc::ioctl(descriptor, UFFDIO_REGISTER, &raw mut register) } == 0;
        check(spoken && there, || "userfaultfd does not serve".into());
        thread::spawn(move || fill_late(descriptor));
        let (began_ns, samples_us) = (AtomicU64::new(0), Mutex::default());
        Some(Box::leak(Box::new(Self { base, pages, since: Instant::now(), began_ns, samples_us })))
    }

    /// How many there are.
    pub fn pages(&self) -> usize {
        self.pages
    }

    /// Touches a page, which blocks in the kernel until the page arrives.
    pub fn touch(&self, page: usize) {
        let word: *const u64 = std::ptr::with_exposed_provenance(self.base + page * PAGE_BYTES);
        self.began_ns.store(self.since.elapsed().as_nanos() as u64, SeqCst);
        // SAFETY: a mapped page, zeroed when it comes.
        check(unsafe { word.read_volatile() } == 0, || "a page that came is zero".into());
    }

    /// Whether the neighbour has run since the fault started. If not, the caller yields and asks
    /// again.
    pub fn was_seen(&self) -> bool {
        self.began_ns.load(SeqCst) == 0
    }

    /// Called by the neighbour. If it is its first run since a fault started, records the delay.
    /// Returns whether all faults were noticed.
    pub fn see(&self) -> bool {
        let began_ns = self.began_ns.load(SeqCst);
        // Read afterwards: the neighbour may be preempted here and continue after the next fault
        // has started.
        let now_ns = self.since.elapsed().as_nanos() as u64;
        let mut samples_us = self.samples_us.lock().expect("no holder panics");
        if began_ns != 0 {
            samples_us.push((now_ns - began_ns) as f64 / 1e3);
            self.began_ns.store(0, SeqCst);
        }
        samples_us.len() >= self.pages
    }

    /// Prints the line.
    pub fn emit(&self) {
        let mut samples_us = self.samples_us.lock().expect("no holder panics").clone();
        check(samples_us.len() == self.pages, || "a fault was not seen".into());
        samples_us.sort_by(f64::total_cmp);
        let quantile = |q: f64| samples_us[(q * (samples_us.len() - 1) as f64) as usize];
        let more = json!({ "args": [self.pages], "p99_us": quantile(0.99),
            "check": format!("{} faults", samples_us.len()) });
        emit("page_fault", quantile(0.5), "us", more);
    }
}

/// Fills each requested page after the delay `LATE`.
fn fill_late(descriptor: i32) {
    let mut message = [0_u64; MESSAGE_WORDS];
    // SAFETY: the kernel writes at most that many bytes.
    while unsafe { libc::read(descriptor, message.as_mut_ptr().cast(), size_of_val(&message)) } > 0
    {
        thread::sleep(LATE);
        let page = message[2] & !(PAGE_BYTES as u64 - 1);
        let mut zero = [page, PAGE_BYTES as u64, 0, 0];
        // SAFETY: the kernel reads and writes four words, and fills a page of this process.
        let filled = unsafe { libc::ioctl(descriptor, UFFDIO_ZEROPAGE, &raw mut zero) } == 0;
        check(filled, || "a page cannot be filled".into());
    }
}
