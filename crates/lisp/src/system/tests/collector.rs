//! Collections while threads run, on one and on several virtual processors, with services of the
//! collector being killed.

use super::{boot, last, on, within_watchdog};
use crate::kernel::service::markers::ENOUGH;
use crate::kernel::{Kernel, lock};
use crate::system::{CellCache, Options, Torture};
use kyocho_heap::heap::ForeignObject;
use std::sync::{Arc, Mutex};

#[test]
fn no_object_is_lost_when_collectors_and_markers_are_killed_during_concurrent_collections() {
    for count in [1, 2, ENOUGH] {
        within_watchdog(move || {
            let system = boot(Options { memory_max_bytes: 256 << 20, ..on(count) });
            let mut session = system.session();
            // Two threads exchange parts of two large tables, through a channel and the other's
            // table. Each part must remain in one of them.
            let text = "
                (define size 20000)
                (define (table from) (let ((v (make-vector size)))
                  (do ((i 0 (+ i 1))) ((= i size) v) (vector-set! v i (list (+ from i) (make-vector 100 i))))))
                (define a (table 0))
                (define b (table size))
                (define stop #f)
                (define there (make-channel 100))
                (define (shuffle)
                  (let loop ((i 0) (k 7919))
                    (if (not stop)
                        (let ((j (modulo (* k 31) size)) (part (vector-ref a i)))
                          (vector-set! a i (vector-ref b j))
                          (vector-set! b j #f)
                          (channel-send! there (cons j part))
                          (loop (modulo (+ i 1) size) (modulo (+ k 7919) size)))
                        (channel-close! there))))
                (define (put)
                  (let ((next (channel-receive there #f)))
                    (if next (begin (put! (car next) (cdr next)) (put)))))
                (define (put! j part) (if (vector-ref b j) (begin (thread-yield!) (put! j part)) (vector-set! b j part)))
                (define threads (list (spawn shuffle) (spawn put)))
                (gc) (gc)
                'begun";
            assert_eq!(last(&mut session, text), "begun");
            assert!(system.kernel.heap.collects_concurrently());
            for round in 0..4 {
                let collector = &system.kernel.collector;
                let markers = collector.markers.microprocesses();
                let services = markers.into_iter().chain([collector.microprocess()]);
                let _gone: Vec<_> = services.map(|service| service.kill()).collect();
                assert_eq!(last(&mut session, "(gc) 'collected"), "collected", "round {round}");
            }
            let text = "
                (set! stop #t)
                (for-each thread-join! threads)
                (define seen (make-vector (* 2 size) #f))
                (define (look part)
                  (let ((n (car part)))
                    (if (= (vector-ref (cadr part) 5) (vector-ref (cadr part) 99) (modulo n size)) (vector-set! seen n #t))))
                (vector-for-each look a)
                (vector-for-each look b)
                (let count ((i 0) (n 0)) (if (= i (* 2 size)) n (count (+ i 1) (if (vector-ref seen i) (+ n 1) n))))";
            assert_eq!(last(&mut session, text), "40000", "on {count}");
        });
    }
}

/// A table whose rows refer to about ten objects each.
const TABLE: &str = "
    (define size 30000)
    (define table (make-vector size))
    (do ((i 0 (+ i 1))) ((= i size)) (vector-set! table i (list i (vector i (list i)) (make-vector 40 i))))
    (gc)
    'begun";

const COUNT: &str = "
    (let count ((i 0) (n 0))
      (if (= i size)
          n
          (let ((row (vector-ref table i)))
            (count (+ i 1)
                   (if (and (equal? (list i (vector i (list i))) (list (car row) (cadr row))) (= i (vector-ref (caddr row) 39)))
                       (+ n 1)
                       n)))))";

#[test]
fn markers_of_other_virtual_processors_help() {
    // Once concurrently, once with the world stopped because the limit is near.
    for memory_max_bytes in [256 << 20, 64 << 20] {
        within_watchdog(move || {
            let system = boot(Options { memory_max_bytes, ..on(ENOUGH) });
            let mut session = system.session();
            assert_eq!(last(&mut session, TABLE), "begun");
            // The host decides whether a marker starts in time, so the test retries.
            while system.statistics().last.helped_bytes == 0 {
                assert_eq!(last(&mut session, "(gc) 'collected"), "collected");
            }
            assert!(system.statistics().last.live_bytes > 30_000 * 41 * 8);
            assert_eq!(last(&mut session, COUNT), "30000");
        });
    }
}

#[test]
fn few_virtual_processors_have_no_markers() {
    for count in [1, ENOUGH - 1] {
        within_watchdog(move || {
            let system = boot(on(count));
            assert_eq!(system.kernel.collector.markers.count(), 0);
            assert_eq!(system.kernel.heap.limits().helpers_max, 0);
        });
    }
}

#[test]
fn killed_markers_lose_no_object_and_are_started_again() {
    within_watchdog(|| {
        let torture = Torture { every: 1 << 40, phase: 0, concurrent: false };
        let options = Options { memory_max_bytes: 256 << 20, torture: Some(torture), ..on(ENOUGH) };
        let system = boot(options);
        let mut session = system.session();
        assert_eq!(last(&mut session, TABLE), "begun");
        for _ in 0..10 {
            for marker in system.kernel.collector.markers.microprocesses() {
                let _gone = marker.kill();
            }
            assert_eq!(last(&mut session, "(gc) 'collected"), "collected");
        }
        assert_eq!(last(&mut session, COUNT), "30000");
        while system.statistics().last.helped_bytes == 0 {
            assert_eq!(last(&mut session, "(gc) 'collected"), "collected");
        }
    });
}

/// Threads to which nothing refers, each started with values to which nothing else refers. A long
/// primitive runs before each start, so the world is usually being stopped meanwhile.
const STORM: &str = "
    (define size 100)
    (define (start i)
      (let ((data (list i (vector i (list i)))))
        (expt 3 60000)
        (spawn (lambda ()
                 (if (equal? data (list i (vector i (list i))))
                     (channel-send! whole i))))
        (spawn (lambda () 'next))
        (spawn (lambda () 'last))
        (list 'another 'life)))
    (define whole (make-channel size))
    (define collecting #t)
    (define collector (spawn (lambda () (let loop () (if collecting (begin (gc) (loop)))))))
    (define (round)
      (do ((i 0 (+ i 1))) ((= i size)) (start i))
      (do ((i 0 (+ i 1)) (sum 0 (+ sum (channel-receive whole)))) ((= i size) sum)))";

#[test]
fn threads_started_while_the_world_is_being_stopped_lose_no_object() {
    for concurrent in [false, true] {
        within_watchdog(move || {
            let torture = Torture { every: 1 << 40, phase: 0, concurrent };
            let options = Options { memory_max_bytes: 64 << 20, torture: Some(torture), ..on(2) };
            let system = boot(options);
            let mut session = system.session();
            assert_eq!(last(&mut session, STORM), "");
            for round in 0..10 {
                assert_eq!(last(&mut session, "(round)"), "4950", "round {round}, {concurrent}");
            }
            last(&mut session, "(set! collecting #f) (thread-join! collector)");
        });
    }
}

const MIB: usize = 1 << 20;

#[test]
fn the_heap_grows_and_shrinks_with_its_live_bytes() {
    for count in [1, 2] {
        within_watchdog(move || {
            let system = boot(Options { memory_max_bytes: 1024 * MIB, ..on(count) });
            let mut session = system.session();
            let statistics = || system.kernel.heap.statistics();
            let grow = "
                (define (grow n l) (if (= n 0) l (grow (- n 1) (cons (make-vector 98 n) l))))
                (define live #f)";
            assert_eq!(last(&mut session, grow), "");
            let mut first_used_bytes = None;
            for round in 0..5 {
                // 800 bytes each, and a pair.
                assert_eq!(
                    last(&mut session, "(set! live (grow 150000 '())) (gc) 'grown"),
                    "grown"
                );
                let grown = statistics();
                assert!(grown.used_bytes > 115 * MIB, "round {round}: {grown:?}");
                assert!(grown.resident_bytes >= grown.used_bytes);
                assert_eq!(last(&mut session, "(set! live #f) (gc) (gc) 'shrunk"), "shrunk");
                let shrunk = statistics();
                // At most the next budget is kept for later, because little was taken since the
                // collection before.
                let kept_max = shrunk.trigger_bytes + shrunk.used_bytes + MIB;
                assert!(shrunk.resident_bytes <= kept_max, "round {round}: {shrunk:?}");
                assert!(shrunk.resident_bytes < 60 * MIB, "round {round}: {shrunk:?}");
                let first = *first_used_bytes.get_or_insert(shrunk.used_bytes);
                assert!(shrunk.used_bytes < first + MIB, "round {round}, from {first}: {shrunk:?}");
            }
        });
    }
}

/// A collection that freed little, but enough for the request, must raise no error.
#[test]
fn an_error_is_raised_only_when_memory_is_really_out() {
    for count in [1, 2] {
        within_watchdog(move || {
            let system = boot(Options { memory_max_bytes: 32 * MIB, ..on(count) });
            let mut session = system.session();
            assert_eq!(last(&mut session, "(define kept '()) (gc) 'begun"), "begun");
            let heap = &system.kernel.heap;
            let (limits, held_bytes) = (heap.limits(), || heap.statistics().last.held_bytes);
            let full_bytes = limits.bytes_max - limits.reserve_bytes();
            let text = "
                (define more '())
                (define (keep pairs) (if (> pairs 0) (begin (set! kept (cons 0 kept)) (keep (- pairs 1)))))
                (define (churn n) (if (> n 0) (begin (make-list 2000 n) (churn (- n 1)))))
                (define (fill) (set! more (cons 1 more)) (fill))
                'defined";
            assert_eq!(last(&mut session, text), "defined");
            let text = format!("(keep {}) (gc) 'kept", (full_bytes - held_bytes()) / 16 - 4000);
            assert_eq!(last(&mut session, &text), "kept");
            // This uses up to a quarter of the reserve. Garbage is collected each time.
            let text = "
                (guard (e (#t (set! more '()) (set! kept '()) (error-object-message e)))
                  (set! more (make-list 8000 0))
                  (gc)
                  (churn 100)
                  (set! more (cons 'churned more))
                  (fill))";
            assert_eq!(last(&mut session, text), "\"out of memory\"", "on {count}");
        });
    }
}

#[test]
fn a_thread_that_wakes_for_a_few_cells_strands_few() {
    const THREADS: usize = 40;
    within_watchdog(|| {
        let system = boot(on(1));
        let mut session = system.session();
        let text = format!(
            "(define answers (make-channel {THREADS}))
             (define messages
               (let loop ((n 0) (all '()))
                 (if (= n {THREADS}) all
                     (let ((message (make-channel 1)))
                       (spawn (lambda ()
                         (let loop () (channel-send! answers (vector (channel-receive message))) (loop))))
                       (loop (+ n 1) (cons message all))))))
             (define (wake-all)
               (for-each (lambda (message) (channel-send! message 'go)) messages)
               (for-each (lambda (message) (channel-receive answers)) messages))
             (wake-all) (gc) (wake-all) (gc)
             'collected"
        );
        assert_eq!(last(&mut session, &text), "collected");
        let stranded = system.kernel.heap.statistics().last.stranded_cells;
        assert!(stranded < THREADS * 100, "{stranded}");
    });
}

#[test]
fn caches_of_idle_threads_are_taken_back() {
    const THREADS: usize = 40;
    const CELLS: usize = 1000;
    within_watchdog(|| {
        let options = Options { cell_cache: CellCache::Fixed(CELLS as u32), ..on(1) };
        let system = boot(options);
        let mut session = system.session();
        let text = format!(
            "(define ready (make-channel {THREADS}))
             (define idle (make-channel))
             (do ((i 0 (+ i 1))) ((= i {THREADS}))
               (spawn (lambda () (channel-send! ready (list i)) (channel-receive idle))))
             (do ((i 0 (+ i 1))) ((= i {THREADS})) (channel-receive ready))
             (gc)
             'given-back"
        );
        let stranded = || system.kernel.heap.statistics().last.stranded_cells;
        assert_eq!(last(&mut session, &text), "given-back");
        // This or an earlier collection has taken their cells.
        let before = system.kernel.heap.statistics().stranded_cells;
        assert!(before as usize > THREADS * CELLS / 2, "{before}");
        assert_eq!(last(&mut session, "(gc) 'again"), "again");
        assert!(stranded() < THREADS * CELLS / 4, "idle threads have none: {}", stranded());
    });
}

/// A list, and threads that only allocate. Each keeps some of its vectors.
fn allocating(threads: usize) -> String {
    format!(
        "(define live (let loop ((i 0) (l '())) (if (< i 300000) (loop (+ i 1) (cons (make-vector 6 i) l)) l)))
         (define ended #f)
         (define (allocate)
           (let loop ((i 0) (kept '()))
             (if (not ended)
                 (loop (+ i 1) (if (= 0 (remainder i 1000)) '() (cons (make-vector 6 i) kept))))))
         (define threads (map (lambda (n) (spawn allocate)) (iota {threads})))
         (gc)
         'begun"
    )
}

#[test]
fn allocating_threads_are_rarely_stopped_for_the_whole_marking() {
    for (count, threads) in [(1, 2), (2, 2), (2, 50)] {
        within_watchdog(move || {
            let system = boot(Options { memory_max_bytes: 128 * MIB, ..on(count) });
            let mut session = system.session();
            assert_eq!(last(&mut session, &allocating(threads)), "begun");
            let statistics = || system.kernel.heap.statistics();
            assert!(system.kernel.heap.collects_concurrently());
            let before = statistics();
            for round in 0..20 {
                assert_eq!(last(&mut session, "(gc) 'collected"), "collected", "round {round}");
            }
            let after = statistics();
            assert!(after.taken_bytes > before.taken_bytes, "threads allocate meanwhile");
            assert!(after.collections >= before.collections + 20);
            // If the host does not run the collector for long, some of them stop the world
            // throughout. Without the threads' waits, nearly all do.
            let collections = after.collections - before.collections;
            let stopped = after.stopped - before.stopped;
            assert!(2 * stopped <= collections, "on {count}, {threads} threads: {after:?}");
            last(&mut session, "(set! ended #t) (for-each thread-join! threads)");
        });
    }
}

/// What a Rust object saw as it was dropped.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    world_is_stopped: bool,
    /// The threads that called `(gc)` may continue.
    is_settled: bool,
}

/// A Rust object that records, when it is dropped, whether the world is stopped.
struct Dropped {
    kernel: Arc<Kernel>,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl ForeignObject for Dropped {}

impl Drop for Dropped {
    fn drop(&mut self) {
        let collections = self.kernel.heap.statistics().collections;
        lock(&self.seen).push(Seen {
            world_is_stopped: self.kernel.threads.is_stopped(),
            is_settled: self.kernel.collector.settled() >= collections,
        });
    }
}

#[test]
fn rust_objects_are_dropped_when_the_world_runs_and_before_gc_returns() {
    for concurrent in [false, true] {
        within_watchdog(move || {
            let torture = Torture { every: 1 << 40, phase: 0, concurrent };
            let system = boot(Options { torture: Some(torture), ..on(2) });
            let mut session = system.session();
            assert_eq!(last(&mut session, "(gc) 'begun"), "begun");
            let (kernel, seen) = (Arc::clone(&system.kernel), Arc::default());
            kernel.threads.as_outsider(|| {
                let object = Dropped { kernel: Arc::clone(&kernel), seen: Arc::clone(&seen) };
                let _garbage = lock(&kernel.mutator).foreign(Box::new(object)).unwrap();
            });
            // Twice, because objects made during a collection survive it.
            assert_eq!(last(&mut session, "(gc) (gc) 'collected"), "collected");
            let expected = [Seen { world_is_stopped: false, is_settled: false }];
            assert_eq!(*lock(&seen), expected, "concurrent: {concurrent}");
        });
    }
}
