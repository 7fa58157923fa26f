//! Ways to sleep in the kernel without calling the runtime, each with the way to end the sleep.

use core::ffi::c_int;
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicUsize, Ordering};
use std::ffi::CString;
use std::io::{PipeReader, PipeWriter, Write, pipe};
use std::os::fd::AsRawFd;
use std::sync::{Arc, Mutex};
use std::thread;

use kyocho_arch::restartable;
use kyocho_sys::task::{SystemCallReader, ThreadId};

use super::late_page::LatePage;
use super::lookup::Lookup;

/// A way to sleep, used repeatedly; times are counted from 0.
pub(crate) trait Kind: Send + Sync {
    /// Sleeps until released.
    fn sleep(&self, time: usize);
    /// Ends the sleep, whether it has begun or not.
    fn release(&self, time: usize);
    /// Repeats what must be repeated until the sleep ends: a signal before the sleep has no effect.
    fn insist(&self, _time: usize) {}
}

/// Every kind with its name; `None` if the host does not permit it.
pub(crate) fn all(times: usize) -> Vec<(&'static str, Option<Box<dyn Kind>>)> {
    fn some<K: Kind + 'static>(kind: K) -> Option<Box<dyn Kind>> {
        Some(Box::new(kind))
    }
    let pages = (0..times).map(|_| LatePage::new()).collect::<Option<Vec<_>>>();
    vec![
        ("pipe read", some(PipeRead::new())),
        ("pipe write", some(PipeWrite::new())),
        ("semaphore of the C library", some(LibrarySemaphore::new())),
        ("mutex of the C library", some(LibraryMutex::new())),
        ("nanosleep", some(Nap::new(raw_nap))),
        ("sleep of the C library", some(Nap::new(library_nap))),
        ("flock", some(FileLock::new())),
        ("wait4", some(Child::new(times))),
        ("stream of the C library", some(Stream::new())),
        ("name of the C library's resolver", some(Lookup::new())),
        ("page fault", pages.and_then(|pages| some(PageFault(pages)))),
    ]
}

struct PipeRead(PipeReader, PipeWriter);

impl PipeRead {
    fn new() -> Self {
        let (reader, writer) = pipe().unwrap();
        Self(reader, writer)
    }
}

impl Kind for PipeRead {
    fn sleep(&self, _time: usize) {
        let mut byte = 0_u8;
        // SAFETY: reads one byte into a variable of this function.
        let count = unsafe { libc::read(self.0.as_raw_fd(), (&raw mut byte).cast(), 1) };
        assert_eq!((count, byte), (1, 42));
    }

    fn release(&self, _time: usize) {
        (&self.1).write_all(&[42]).unwrap();
    }
}

/// A full pipe of one page: a writer waits for a reader.
struct PipeWrite(PipeReader, PipeWriter);

const PAGE: usize = 4096;

impl PipeWrite {
    fn new() -> Self {
        let (reader, writer) = pipe().unwrap();
        // SAFETY: passes numbers.
        let bytes = unsafe { libc::fcntl(writer.as_raw_fd(), libc::F_SETPIPE_SZ, PAGE) };
        assert_eq!(bytes, PAGE as c_int);
        (&writer).write_all(&[0; PAGE]).unwrap();
        Self(reader, writer)
    }
}

impl Kind for PipeWrite {
    fn sleep(&self, _time: usize) {
        let page = [0_u8; PAGE];
        // SAFETY: writes a page of this function.
        let count = unsafe { libc::write(self.1.as_raw_fd(), page.as_ptr().cast(), PAGE) };
        assert_eq!(count, PAGE as isize);
    }

    fn release(&self, _time: usize) {
        let mut page = [0_u8; PAGE];
        // SAFETY: reads at most a page into a buffer of that size.
        let count = unsafe { libc::read(self.0.as_raw_fd(), page.as_mut_ptr().cast(), PAGE) };
        assert_eq!(count, PAGE as isize);
    }
}

/// A futex wait inside the C library.
struct LibrarySemaphore(Box<Opaque<libc::sem_t>>);

/// An object that the C library initialises in place and locks itself.
struct Opaque<T>(core::cell::UnsafeCell<core::mem::MaybeUninit<T>>);

// SAFETY: used only through the C library, which locks it.
unsafe impl<T> Send for Opaque<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Opaque<T> {}

impl<T> Opaque<T> {
    fn new() -> Box<Self> {
        Box::new(Self(core::cell::UnsafeCell::new(core::mem::MaybeUninit::uninit())))
    }

    fn get(&self) -> *mut T {
        self.0.get().cast()
    }
}

impl LibrarySemaphore {
    fn new() -> Self {
        let place = Opaque::new();
        // SAFETY: initialises memory that belongs to this value and does not move.
        assert_eq!(unsafe { libc::sem_init(place.get(), 0, 0) }, 0);
        Self(place)
    }
}

impl Kind for LibrarySemaphore {
    fn sleep(&self, _time: usize) {
        // SAFETY: initialised in `new`.
        assert_eq!(unsafe { libc::sem_wait(self.0.get()) }, 0);
    }

    fn release(&self, _time: usize) {
        // SAFETY: initialised in `new`.
        assert_eq!(unsafe { libc::sem_post(self.0.get()) }, 0);
    }
}

/// A mutex that the neighbour holds at first. The C library lets any thread unlock one of the
/// default kind.
struct LibraryMutex(Box<Opaque<libc::pthread_mutex_t>>);

impl LibraryMutex {
    fn new() -> Self {
        let place = Opaque::new();
        // SAFETY: initialises memory that belongs to this value and does not move.
        assert_eq!(unsafe { libc::pthread_mutex_init(place.get(), ptr::null()) }, 0);
        // SAFETY: initialised above.
        assert_eq!(unsafe { libc::pthread_mutex_lock(place.get()) }, 0);
        Self(place)
    }
}

impl Kind for LibraryMutex {
    /// It is locked again when this returns.
    fn sleep(&self, _time: usize) {
        // SAFETY: initialised in `new`.
        assert_eq!(unsafe { libc::pthread_mutex_lock(self.0.get()) }, 0);
    }

    fn release(&self, _time: usize) {
        // SAFETY: initialised in `new`.
        assert_eq!(unsafe { libc::pthread_mutex_unlock(self.0.get()) }, 0);
    }
}

/// Sleeps of an hour that a signal ends. After a signal too many, it sleeps again.
struct Nap {
    /// The kernel thread that sleeps, or 0.
    thread: AtomicI32,
    /// How many of the sleeps are to end.
    released: AtomicUsize,
    sleep: fn(),
}

const HOUR_S: u32 = 3600;

impl Nap {
    fn new(sleep: fn()) -> Self {
        // SAFETY: all zero is a valid value.
        let mut action: libc::sigaction = unsafe { core::mem::zeroed() };
        action.sa_sigaction = ignore as *const () as usize;
        action.sa_flags = libc::SA_ONSTACK;
        // SAFETY: the handler does nothing. Without SA_RESTART, sleeps end.
        let set = unsafe { libc::sigaction(libc::SIGUSR1, &raw const action, ptr::null_mut()) };
        assert_eq!(set, 0);
        Self { thread: AtomicI32::new(0), released: AtomicUsize::new(0), sleep }
    }
}

extern "C" fn ignore(_signal: c_int) {}

fn raw_nap() {
    let time = libc::timespec { tv_sec: i64::from(HOUR_S), tv_nsec: 0 };
    // SAFETY: reads one timespec.
    unsafe { libc::syscall(libc::SYS_nanosleep, &raw const time, 0) };
}

fn library_nap() {
    // SAFETY: passes a number.
    unsafe { libc::sleep(HOUR_S) };
}

impl Kind for Nap {
    fn sleep(&self, time: usize) {
        // SAFETY: has no arguments.
        self.thread.store(unsafe { libc::gettid() }, Ordering::SeqCst);
        while self.released.load(Ordering::SeqCst) <= time {
            (self.sleep)();
        }
    }

    fn release(&self, time: usize) {
        self.released.store(time + 1, Ordering::SeqCst);
    }

    fn insist(&self, _time: usize) {
        let thread = self.thread.load(Ordering::SeqCst);
        if thread != 0 {
            let process = std::process::id();
            // SAFETY: passes numbers; the thread belongs to this process.
            unsafe { libc::syscall(libc::SYS_tgkill, process, thread, libc::SIGUSR1) };
        }
    }
}

/// A file that the neighbour has locked at first. It is open twice, since a lock belongs to the
/// open file.
struct FileLock(std::fs::File, std::fs::File);

impl FileLock {
    fn new() -> Self {
        let path = fresh_path("lock");
        let ours = std::fs::File::create(&path).unwrap();
        let theirs = std::fs::File::open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        // SAFETY: passes numbers.
        assert_eq!(unsafe { libc::flock(ours.as_raw_fd(), libc::LOCK_EX) }, 0);
        Self(ours, theirs)
    }
}

impl Kind for FileLock {
    /// The neighbour's handle has locked it again when this returns.
    fn sleep(&self, _time: usize) {
        for (file, operation) in
            [(&self.1, libc::LOCK_EX), (&self.1, libc::LOCK_UN), (&self.0, libc::LOCK_EX)]
        {
            // SAFETY: passes numbers.
            assert_eq!(unsafe { libc::flock(file.as_raw_fd(), operation) }, 0);
        }
    }

    fn release(&self, _time: usize) {
        // SAFETY: passes numbers.
        assert_eq!(unsafe { libc::flock(self.0.as_raw_fd(), libc::LOCK_UN) }, 0);
    }
}

/// An unused path.
fn fresh_path(what: &str) -> std::path::PathBuf {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    std::env::temp_dir().join(format!("kyocho-{what}-{}-{number}", std::process::id()))
}

/// Child processes that end when their input does.
struct Child(Vec<Mutex<std::process::Child>>);

impl Child {
    fn new(times: usize) -> Self {
        let start = || {
            let piped = std::process::Stdio::piped;
            std::process::Command::new("cat").stdin(piped()).stdout(piped()).spawn().unwrap()
        };
        Self((0..times).map(|_| Mutex::new(start())).collect())
    }
}

impl Kind for Child {
    fn sleep(&self, time: usize) {
        let process = self.0[time].lock().unwrap().id() as i32;
        let mut status = 0;
        // SAFETY: writes one number into a variable of this function.
        let ended = unsafe { libc::wait4(process, &raw mut status, 0, ptr::null_mut()) };
        assert_eq!((ended, status), (process, 0));
    }

    fn release(&self, time: usize) {
        drop(self.0[time].lock().unwrap().stdin.take());
    }
}

/// A named pipe that the C library opens and reads, as it does with files of names and addresses.
/// It is open for writing all the time, so that it has no end.
struct Stream(CString, std::fs::File);

const LINE: &[u8] = b"127.0.0.1 localhost\n";

impl Stream {
    fn new() -> Self {
        let path = fresh_path("stream");
        let name = CString::new(path.as_os_str().as_encoded_bytes()).unwrap();
        // SAFETY: the path ends in a zero byte.
        assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
        let both_ends = std::fs::OpenOptions::new().read(true).write(true).open(path).unwrap();
        Self(name, both_ends)
    }
}

impl Kind for Stream {
    fn sleep(&self, _time: usize) {
        let mut line = [0_u8; 64];
        // SAFETY: both strings end in a zero byte.
        let stream = unsafe { libc::fopen(self.0.as_ptr(), c"r".as_ptr()) };
        assert!(!stream.is_null());
        // SAFETY: reads at most the given length into a buffer of that size.
        let read = unsafe { libc::fgets(line.as_mut_ptr().cast(), line.len() as c_int, stream) };
        assert!(!read.is_null() && line.starts_with(LINE));
        // SAFETY: opened above.
        assert_eq!(unsafe { libc::fclose(stream) }, 0);
    }

    fn release(&self, _time: usize) {
        (&self.1).write_all(LINE).unwrap();
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // SAFETY: the path ends in a zero byte.
        unsafe { libc::unlink(self.0.as_ptr()) };
    }
}

/// Pages that are filled late.
struct PageFault(Vec<LatePage>);

impl Kind for PageFault {
    fn sleep(&self, time: usize) {
        let byte = ptr::with_exposed_provenance::<u8>(self.0[time].address());
        // SAFETY: reads a mapped byte. The kernel waits until it is filled.
        assert_eq!(unsafe { byte.read_volatile() }, 0);
    }

    fn release(&self, time: usize) {
        self.0[time].fill();
    }
}

/// Runs `body` on a separate kernel thread, once the calling kernel thread sleeps inside a
/// restartable sequence. The argument of `body` waits for a while, long enough for others to notice
/// the sleep.
pub(crate) fn once_asleep_in_a_sequence<T: Send + 'static>(
    body: impl FnOnce(&dyn Fn()) -> T + Send + 'static,
) -> thread::JoinHandle<T> {
    const LOOKS: u32 = 2000;
    let reader = SystemCallReader::open(ThreadId::current()).unwrap();
    thread::spawn(move || {
        let sleeps = || reader.asleep().unwrap().is_some_and(|at| restartable::contains(at.pc));
        while !sleeps() {
            thread::yield_now();
        }
        body(&|| {
            for _ in 0..LOOKS {
                assert!(sleeps());
                thread::yield_now();
            }
        })
    })
}

/// A thread that uses the caller's present CPU, until it is dropped.
pub(crate) struct Rival(Arc<AtomicBool>, Option<thread::JoinHandle<()>>);

pub(crate) fn rival_of_this_cpu() -> Rival {
    let stop = Arc::new(AtomicBool::new(false));
    let heard = Arc::clone(&stop);
    let cpu = kyocho_sys::scheduling::current_cpu();
    let thread = thread::spawn(move || {
        let set = kyocho_sys::scheduling::CpuSet::single(cpu);
        kyocho_sys::scheduling::set_affinity(ThreadId::current(), &set).unwrap();
        while !heard.load(Ordering::Relaxed) {}
    });
    Rival(stop, Some(thread))
}

impl Drop for Rival {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
        if let Some(thread) = self.1.take() {
            thread.join().unwrap();
        }
    }
}

/// Gives up all privileges of the calling kernel thread and of threads that it starts.
pub(crate) fn drop_capabilities() {
    const VERSION_3: u32 = 0x2008_0522;
    let (header, none) = ([VERSION_3, 0], [0_u32; 6]);
    // SAFETY: the kernel reads two and six words.
    let answer = unsafe { libc::syscall(libc::SYS_capset, header.as_ptr(), none.as_ptr()) };
    assert_eq!(answer, 0, "capabilities may always be given up");
}
