//! A thread killed in any state ends, runs its last `dynamic-wind` procedures, and abandons its
//! mutex. Nothing else of it remains. The table has one row for each state.
//!
//! The test counts what remains, so it runs in a process of its own.

mod states;

use super::sessions::{in_background, interrupted, nap, open};
use super::silence;
use super::{boot, on, within_watchdog};
use crate::kernel::lock;
use crate::kernel::session::thread::{LispThread, RUNNING, SAFE, WAITING};
use crate::system::{Session, System};
use core::net::SocketAddr;
use kyocho_heap::account::{Account, Bounds, Usage};
use kyocho_microprocess::Microprocess;
use kyocho_microprocess::control::{Status, snapshot};
use kyocho_sys::prim::atomic::Ordering;
use socket2::{Domain, Socket, Type};
use states::{At, Host, STATES, Shortage, State, Wait, Work};
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

/// Marks the process in which the counting happens.
const CHILD: &str = "KYOCHO_TEST_CHILD";

/// The start of each session: a victim thread, which holds a mutex and has a `dynamic-wind`
/// procedure to run.
const TOOLS: &str = "
    (define (port-of listener)
      (string->number (car (reverse (string-split (socket-address listener) #\\:)))))
    (define mine (make-mutex))
    (define inside #f)
    (define last-done 0)
    (define (victim-of thunk)
      (spawn (lambda ()
               (mutex-lock! mine)
               (dynamic-wind
                 values
                 (lambda () (set! inside #t) (thunk))
                 (lambda () (set! last-done (+ last-done 1)))))
             'victim))
    (define (ended)
      (list (guard (e ((terminated-thread-exception? e) 'terminated)) (thread-join! victim))
            (guard (e ((abandoned-mutex-exception? e) (mutex-unlock! mine) 'abandoned)) (mutex-lock! mine))
            last-done))
    'ready";

/// The ways to kill it.
const WAYS: &[(&str, &str)] = &[
    ("terminated", "(thread-terminate! victim)"),
    ("twice", "(thread-terminate! victim) (thread-terminate! victim)"),
    ("by number", "(kill (thread-number victim))"),
    ("while suspended", "(suspend (thread-number victim)) (thread-terminate! victim)"),
    (
        "by one that is killed",
        "(define said (make-channel 1))
         (define killer (spawn (lambda ()
           (thread-terminate! victim) (channel-send! said #t)
           (let loop () (thread-terminate! victim) (loop))) 'killer))
         (channel-receive said) (thread-terminate! killer)",
    ),
    ("from outside", ""),
];

/// Maximum number of checks whether the counts are as before, with a collection before each.
const LOOKS_MAX: usize = 2_000;

/// The outside world of the victims.
struct OutsideWorld {
    folder: PathBuf,
    certificate: String,
    key: String,
    /// A port that never answers.
    silent: u16,
    /// One is never written, the other never read.
    _pipes: [File; 2],
    _crowd: (Socket, Vec<TcpStream>),
}

fn named_pipe(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

impl OutsideWorld {
    fn new() -> Self {
        let folder = std::env::temp_dir().join(format!("kyocho-kills-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        named_pipe(&folder.join("alone"));
        let pipes = ["silent", "stuffed"].map(|name| {
            named_pipe(&folder.join(name));
            OpenOptions::new().read(true).write(true).open(folder.join(name)).unwrap()
        });
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        let (certificate, key) = (made.cert.pem(), made.signing_key.serialize_pem());
        let crowd = crowd();
        let silent = crowd.0.local_addr().unwrap().as_socket().unwrap().port();
        Self { folder, certificate, key, silent, _pipes: pipes, _crowd: crowd }
    }

    fn fill(&self, text: &str) -> String {
        text.replace("$folder", &self.folder.display().to_string())
            .replace("$certificate", &self.certificate)
            .replace("$key", &self.key)
            .replace("$silent", &self.silent.to_string())
    }
}

/// A listener whose queue is full, so that a further client waits for an answer.
fn crowd() -> (Socket, Vec<TcpStream>) {
    let listener = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    listener.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
    listener.listen(0).unwrap();
    let address = listener.local_addr().unwrap().as_socket().unwrap();
    let wait = core::time::Duration::from_millis(300);
    let come = || TcpStream::connect_timeout(&address, wait).ok();
    (listener, core::iter::from_fn(come).collect())
}

fn count_entries(folder: &str) -> usize {
    fs::read_dir(folder).unwrap().count()
}

/// Without the descriptors through which kernel threads are inspected: a kernel thread that has
/// ended keeps its descriptor until it is joined.
fn count_descriptors() -> usize {
    let entries = fs::read_dir("/proc/self/fd").unwrap().flatten();
    let targets = entries.filter_map(|entry| fs::read_link(entry.path()).ok());
    targets.filter(|target| !target.ends_with("syscall")).count()
}

fn sleeps_in_the_host(microprocess: Microprocess) -> bool {
    let all = snapshot(usize::MAX).microprocesses;
    let entry = all.into_iter().find(|entry| entry.id == microprocess.global_id());
    entry.is_some_and(|entry| entry.status == Status::Blocked)
}

impl At {
    fn holds(self, thread: &LispThread) -> bool {
        let state = thread.state.load(Ordering::SeqCst);
        match self {
            Work => state == RUNNING,
            Wait => state == WAITING,
            Host => {
                let microprocess = thread.microprocess.get();
                state == SAFE && microprocess.is_some_and(|&it| sleeps_in_the_host(it))
            }
            // The memory of the thread's user, which has no other thread that takes any.
            Shortage => {
                let account = &thread.session.account;
                account.live_bytes() > account.bounds().memory_bytes_max / 2
            }
        }
    }
}

fn eval(session: &mut Session, text: &str) -> String {
    match session.eval(text, "test") {
        Ok(evaluation) => evaluation.values.last().cloned().unwrap_or_default(),
        Err(report) => format!("error {report}"),
    }
}

fn find(system: &System, name: &str) -> Option<Arc<LispThread>> {
    system.kernel.threads.started().into_iter().find(|thread| thread.name() == name)
}

/// Kills a thread in a state in one of the ways, in a session of its own, of which nothing remains.
fn kill(system: &System, place: &OutsideWorld, state: &State, way: (&str, &str)) {
    let &(name, at, before, body) = state;
    let title = format!("{name}, {}", way.0);
    // Written directly, not through the test harness, so that it is visible if the test hangs.
    let _ = writeln!(std::io::stderr(), "{title}");
    // Only the victim that is to run out of memory has a bound. Collections could delay the others
    // on a slow host, and their last procedures could run into the time limit.
    let lacks = Bounds { memory_bytes_max: 32 << 20, ..Bounds::NONE };
    let bounds = if at == Shortage { lacks } else { Bounds::NONE };
    let account = Account::new("ada", bounds);
    let (mut session, page) = open(system, &account);
    assert_eq!(eval(&mut session, TOOLS), "ready");
    silence::begin();
    let begun = eval(&mut session, &place.fill(before));
    assert!(!begun.contains("error"), "{title}: {begun}");
    let begun =
        eval(&mut session, &place.fill(&format!("(define victim (victim-of (lambda () {body})))")));
    assert_eq!(begun, "", "{title}");
    let victim = find(system, "victim").unwrap_or_else(|| panic!("{title}: {}", page.text()));
    // A thread without memory cannot evaluate; but when it takes memory it is in the intended
    // state.
    let is_alive = || assert!(find(system, "victim").is_some(), "{title}: {}", page.text());
    while at != Shortage && eval(&mut session, "inside") == "#f" {
        is_alive();
        nap();
    }
    // Checks at times other than right after an evaluation, when a working thread might always be
    // stopped.
    while !at.holds(&victim) {
        is_alive();
        nap();
    }
    if way.1.is_empty() {
        victim.microprocess.get().unwrap().kill().unwrap();
    } else {
        assert!(!eval(&mut session, way.1).contains("error"), "{title}");
    }
    let left = Arc::downgrade(&victim);
    drop(victim);
    assert_eq!(eval(&mut session, "(ended)"), "(terminated abandoned 1)", "{title}");
    session.flush_output();
    assert!(!page.text().contains("in thread"), "{title}: {}", page.text());
    if body.contains("silent.test") {
        silence::end();
    }
    // The object that it waited for still exists, and its queue no longer contains the thread.
    assert_eq!(eval(&mut session, "(set! victim #f)"), "", "{title}");
    for _ in 0..LOOKS_MAX {
        if left.strong_count() == 0 {
            break;
        }
        assert_eq!(eval(&mut session, "(gc) 'collected"), "collected");
    }
    assert_eq!(left.strong_count(), 0, "{title}");
    drop(session);
    // Resources left open are closed when they are found to be garbage.
    while account.usage() != Usage::default() {
        assert_eq!(eval(&mut system.session(), "(gc) 'collected"), "collected");
    }
}

/// Number of kernel threads beside the spare ones, of which there are more while the host is busy.
fn count_kernel_threads() -> usize {
    let spares = || {
        let processors = snapshot(usize::MAX).virtual_processors;
        processors.iter().map(|processor| processor.spares as usize).sum::<usize>()
    };
    loop {
        let (before, count) = (spares(), count_entries("/proc/self/task"));
        if spares() == before {
            return count - before;
        }
    }
}

/// The counts when the system is idle.
#[derive(Debug)]
struct Counts {
    descriptors: usize,
    kernel_threads: usize,
    microprocesses: usize,
    foreign_objects: usize,
    live_bytes: usize,
}

impl Counts {
    fn now(system: &System) -> Self {
        let mut session = system.session();
        for _ in 0..2 {
            assert_eq!(eval(&mut session, "(gc) 'collected"), "collected");
        }
        Self {
            descriptors: count_descriptors(),
            kernel_threads: count_kernel_threads(),
            microprocesses: snapshot(usize::MAX).microprocesses.len(),
            foreign_objects: system.kernel.heap.foreign_objects(),
            live_bytes: system.statistics().last.live_bytes,
        }
    }

    /// Whether no count has grown. Each symbol that was read leaves about 50 bytes.
    fn is_no_more_than(&self, before: &Self) -> bool {
        self.descriptors <= before.descriptors
            && self.kernel_threads <= before.kernel_threads
            && self.microprocesses <= before.microprocesses
            && self.foreign_objects <= before.foreign_objects
            && self.live_bytes < before.live_bytes + (64 << 10)
    }
}

/// Kills a thread in a state in one of the ways. If a thread has no memory left, it may be unable
/// to evaluate a text that ends its own thread, so it is ended from outside.
fn try_pair(system: &System, place: &OutsideWorld, state: &State, way: (&str, &str)) {
    if state.1 != Shortage || way.1.is_empty() {
        kill(system, place, state, way);
    }
}

fn all_states() {
    let place = OutsideWorld::new();
    for count in [1, 2] {
        let system = boot(on(count));
        let round = |is_tried: &dyn Fn(usize) -> bool| {
            let pairs = (0..STATES.len()).flat_map(|i| (0..WAYS.len()).map(move |j| (i, j)));
            for (i, j) in pairs.filter(|(i, j)| is_tried(i + j)) {
                try_pair(&system, &place, &STATES[i], WAYS[j]);
            }
        };
        let each_way_on_one_or_two = |turn: usize| turn % 2 == count % 2;
        // Objects that are made once remain: names of libraries, buffers, a node of shared memory.
        round(&|turn| turn % WAYS.len() == 0);
        let before = Counts::now(&system);
        round(&each_way_on_one_or_two);
        // A join can return before the joined thread's last step has ended.
        while !system.kernel.threads.started().is_empty() {
            nap();
        }
        // Kernel threads of ended calls are spare ones after a while.
        let mut after = Counts::now(&system);
        for _ in 0..10 * LOOKS_MAX {
            if after.is_no_more_than(&before) {
                break;
            }
            nap();
            after = Counts::now(&system);
        }
        assert!(after.is_no_more_than(&before), "{after:?} from {before:?}");
    }
    fs::remove_dir_all(&place.folder).unwrap();
}

#[test]
fn a_thread_killed_in_any_state_leaves_nothing_behind() {
    if std::env::var_os(CHILD).is_some() {
        return within_watchdog(all_states);
    }
    let name = "system::tests::kills::a_thread_killed_in_any_state_leaves_nothing_behind";
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", name, "--nocapture", "--test-threads=1"]).env(CHILD, "1");
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {said}", output.status);
}

#[test]
fn joining_a_killed_thread_that_has_not_run_since_is_no_deadlock() {
    within_watchdog(|| {
        let system = boot(on(1));
        let accounts = ["ada", "bob"].map(|name| Account::new(name, Bounds::NONE));
        let [(mut a, _), (b, _)] = accounts.each_ref().map(|account| open(&system, account));
        let text = "
            (define t (spawn (lambda () (channel-receive (make-channel))) 'victim))
            (thread-priority-set! t 0)";
        assert_eq!(eval(&mut a, text), "");
        let victim = find(&system, "victim").unwrap();
        let (interrupt, busy) = (b.handle(), in_background(b, "(let loop () (loop))"));
        let bob_runs = |thread: &Arc<LispThread>| {
            Arc::ptr_eq(&thread.session.account, &accounts[1]) && Work.holds(thread)
        };
        while !Wait.holds(&victim) || !system.kernel.threads.started().iter().any(bob_runs) {
            nap();
        }
        victim.microprocess.get().unwrap().kill().unwrap();
        let join = "(guard (e ((terminated-thread-exception? e) 'ended)) (thread-join! t))";
        let joins = in_background(a, join);
        while lock(&victim.inner).joiners.is_empty() && !joins.is_finished() {
            nap();
        }
        interrupted(&interrupt, busy);
        assert_eq!(joins.join().unwrap().1, "ended");
    });
}

#[test]
fn a_thread_that_ends_while_it_is_killed_ends_once() {
    within_watchdog(|| {
        let system = boot(on(2));
        let account = Account::new("ada", Bounds::NONE);
        let (mut session, page) = open(&system, &account);
        let text = "
            (define ends '(returned terminated raised))
            (define (wait n) (if (> n 0) (begin (thread-yield!) (wait (- n 1)))))
            (define (end turn)
              (let ((t (spawn (lambda () (wait (modulo turn 7)) (if (even? turn) 'returned (raise 'oops))))))
                (wait (modulo turn 11))
                (thread-terminate! t)
                (guard (e ((terminated-thread-exception? e) 'terminated)
                          ((uncaught-exception? e) 'raised))
                  (thread-join! t))))
            (let loop ((turn 0))
              (cond ((= turn 2000) 'all) ((memq (end turn) ends) (loop (+ turn 1))) (else turn)))";
        assert_eq!(eval(&mut session, text), "all", "{}", page.text());
        drop(session);
        assert_eq!(account.usage(), Usage::default());
    });
}
