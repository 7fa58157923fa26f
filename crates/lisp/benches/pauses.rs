//! How long is the world stopped for a collection, by live memory and by the number of threads that
//! allocate?
//!
//! `cargo bench -p kyocho-lisp --bench pauses [-- MIB [COLLECTIONS]]`: fills a system's heap with
//! vectors in a list, up to 1,024 MiB by default. Then 0, 2 and 50 threads allocate while
//! collections are requested, by default 100. If their number is given, nothing else is measured.
//! The *pause* is the collector's work while all threads are stopped. The *stop* begins with the
//! request to all threads and ends when they may run again. It includes the wait until the last
//! thread has stopped. A collection stops the world twice; the sample is the longer one. Baselines
//! in the same run: a heap so close to its limit that the world is stopped throughout; and an
//! eighth and half of the live memory. Unit: milliseconds. The 99th percentile of all stops of
//! concurrent collections should be below 10. The table is Markdown, for docs/serve.md.
//!
//! Second question: how long does marking take on 1, 2, 4, ... virtual processors, up to those of
//! the machine and at least four? Only one marker can follow a list, so this part uses a vector of
//! short lists, with the world stopped throughout. Baseline: one virtual processor.
//!
//! Third question: how long does a thread wait for a collection while another one reads or compiles
//! a large form? Baseline: another thread that runs compiled code without a break.
#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a bench reports, and may fail")]

use kyocho_lisp::system::{Options, System};
use std::time::Instant;

const MIB: usize = 1024;
const CONCURRENT: usize = 100;
const STOPPED: usize = 10;
/// Numbers of threads that allocate meanwhile.
const ALLOCATING: [usize; 3] = [0, 2, 50];
/// Bytes of a pair, and of a vector of six elements with its header.
const ITEM_BYTES: usize = 16 + 64;

/// What the other thread does, and the expression for it.
const LONG_FORMS: [(&str, &str); 4] = [
    ("calls what is compiled", "(let loop ((n 0)) (if (< n 50000000) (loop (+ n 1))))"),
    ("compiles a literal of 2,000,000 parts", "(length (eval (list 'quote (iota 2000000)) here))"),
    ("compiles 300,000 calls", "(eval (cons 'begin (make-list 300000 '(car '(1)))) here)"),
    ("reads a list of 1,000,000 parts", "(length (read (open-input-string text)))"),
];

fn main() {
    let mut numbers = std::env::args().filter_map(|word| word.parse().ok());
    let mib = numbers.next().unwrap_or(MIB);
    let collections = numbers.next();
    println!(
        "| alive | threads | pause: p50, p99, longest | stop: p50, p99, longest | allocated | stopped throughout: p50, longest | allocated |"
    );
    println!("|---|---|---|---|---|---|---|");
    for mib in [mib / 8, mib / 2, mib] {
        for threads in ALLOCATING {
            let concurrent = stops(mib, 4 * mib, threads, collections.unwrap_or(CONCURRENT));
            let throughout = stops(mib, mib + mib * 3 / 4, threads, STOPPED);
            println!(
                "| {mib} MiB | {threads} | {} | {} | {:.0} MB/s | {:.1}, {:.1} ms | {:.0} MB/s |",
                percentiles(&concurrent.pauses_ms),
                percentiles(&concurrent.stops_ms),
                concurrent.allocated_mb_per_s,
                at(&throughout.stops_ms, 0.5),
                at(&throughout.stops_ms, 1.0),
                throughout.allocated_mb_per_s
            );
        }
    }
    if collections.is_some() {
        return;
    }
    println!("{} MiB alive in a vector of lists, the world stopped; marking:", mib / 2);
    let processors = std::thread::available_parallelism().map_or(1, usize::from).max(4);
    let mut one_ms = None;
    for count in (0..).map(|power| 1 << power).take_while(|&count| count <= processors) {
        let (sorted, helped) = marking_ms(mib / 2, count);
        let ms = sorted[STOPPED / 2];
        println!(
            "{count:>3} virtual processors: {ms:.1} ms ({:.1} to {:.1}), {:.2} times as fast as one; helpers marked {:.0} %",
            sorted[0],
            sorted[STOPPED - 1],
            *one_ms.get_or_insert(ms) / ms,
            helped * 100.0
        );
    }
    println!("(gc), beside one who");
    let [(calls, baseline), long_forms @ ..] = LONG_FORMS;
    let baseline_ms = longest_beside_ms(baseline);
    println!("{calls}: longest {baseline_ms:.1} ms");
    for (form, text) in long_forms {
        let longest_ms = longest_beside_ms(text);
        println!("{form}: longest {longest_ms:.1} ms, {:.1} times", longest_ms / baseline_ms);
    }
}

/// The sample at this fraction of the sorted ones.
fn at(sorted: &[f64], part: f64) -> f64 {
    sorted[((sorted.len() - 1) as f64 * part) as usize]
}

fn percentiles(sorted: &[f64]) -> String {
    format!("{:.1}, {:.1}, {:.1} ms", at(sorted, 0.5), at(sorted, 0.99), at(sorted, 1.0))
}

/// The longest of the collections that one thread requests while another evaluates `text`.
fn longest_beside_ms(text: &str) -> f64 {
    let system = System::boot(Options::default(), &mut |_| {}).unwrap();
    let mut session = system.session();
    let measured = format!(
        "(define here (interaction-environment))
         (define text (let ((out (open-output-string))) (write (iota 1000000) out) (get-output-string out)))
         (define ended #f)
         (define other (spawn (lambda () (dynamic-wind (lambda () #t) (lambda () {text}) (lambda () (set! ended #t))))))
         (define (longest-ns longest)
           (if ended
               longest
               (let ((begun (current-jiffy)))
                 (gc)
                 (longest-ns (max longest (quotient (* 1000000000 (- (current-jiffy) begun)) (jiffies-per-second)))))))
         (define longest (longest-ns 0))
         (thread-join! other)
         longest"
    );
    let evaluation = session.eval(&measured, "bench").unwrap();
    evaluation.values.last().unwrap().parse::<f64>().unwrap() / 1e6
}

/// Marking times, the shortest first, and the fraction of bytes that helpers marked.
fn marking_ms(mib: usize, virtual_processors: usize) -> (Vec<f64>, f64) {
    let options = Options {
        memory_max_bytes: (mib + mib * 3 / 4).max(64) << 20,
        virtual_processors: Some(virtual_processors),
        ..Options::default()
    };
    let system = System::boot(options, &mut |_| {}).unwrap();
    let mut session = system.session();
    let rows = (mib << 20) / (10 * ITEM_BYTES);
    let fill = format!(
        "(define (row i) (let loop ((n 0) (l '())) (if (< n 10) (loop (+ n 1) (cons (make-vector 6 i) l)) l)))
         (define live (make-vector {rows}))
         (do ((i 0 (+ i 1))) ((= i {rows})) (vector-set! live i (row i)))
         (gc)"
    );
    session.eval(&fill, "bench").unwrap();
    let (mut times_ms, mut helped) = (Vec::new(), 0.0);
    for _ in 0..STOPPED {
        session.eval("(gc)", "bench").unwrap();
        let last = system.statistics().last;
        assert!(last.live_bytes >= rows * 10 * ITEM_BYTES, "everything is alive: {last:?}");
        times_ms.push(last.marking.as_secs_f64() * 1e3);
        helped += last.helped_bytes as f64 / last.live_bytes as f64 / STOPPED as f64;
    }
    session.eval("(define live #f) (gc) (gc)", "bench").unwrap();
    times_ms.sort_by(f64::total_cmp);
    (times_ms, helped)
}

/// Samples, the shortest first.
struct Stops {
    pauses_ms: Vec<f64>,
    stops_ms: Vec<f64>,
    /// What the threads allocated meanwhile.
    allocated_mb_per_s: f64,
}

/// Measures collections beside threads that allocate.
fn stops(mib: usize, limit_mib: usize, threads: usize, collections: usize) -> Stops {
    let options = Options { memory_max_bytes: limit_mib.max(64) << 20, ..Options::default() };
    let system = System::boot(options, &mut |_| {}).unwrap();
    let mut session = system.session();
    let items = (mib << 20) / ITEM_BYTES;
    // Each keeps up to a thousand of the vectors that it allocates.
    let fill = format!(
        "(define live (let loop ((i 0) (l '())) (if (< i {items}) (loop (+ i 1) (cons (make-vector 6 i) l)) l)))
         (define ended #f)
         (define made (make-vector {threads} 0))
         (define (allocate n)
           (let loop ((i 0) (kept '()))
             (vector-set! made n i)
             (if (not ended)
                 (loop (+ i 1) (if (= 0 (remainder i 1000)) '() (cons (make-vector 6 i) kept))))))
         (define threads (map (lambda (n) (spawn (lambda () (allocate n)))) (iota {threads})))
         (gc)"
    );
    session.eval(&fill, "bench").unwrap();
    let mut stops = Stops { pauses_ms: Vec::new(), stops_ms: Vec::new(), allocated_mb_per_s: 0.0 };
    let made = |session: &mut kyocho_lisp::system::Session| {
        let evaluation = session.eval("(apply + (vector->list made))", "bench").unwrap();
        evaluation.values.last().unwrap().parse::<usize>().unwrap()
    };
    let (begin, before) = (Instant::now(), made(&mut session));
    for _ in 0..collections {
        system.take_longest_stop();
        session.eval("(gc)", "bench").unwrap();
        let last = system.statistics().last;
        assert!(last.live_bytes >= items * ITEM_BYTES, "everything is alive: {last:?}");
        stops.pauses_ms.push(last.pause.as_secs_f64() * 1e3);
        stops.stops_ms.push(system.take_longest_stop().as_secs_f64() * 1e3);
    }
    let made_bytes = (made(&mut session) - before) * ITEM_BYTES;
    stops.allocated_mb_per_s = made_bytes as f64 / 1e6 / begin.elapsed().as_secs_f64();
    assert!(threads == 0 || made_bytes > 0, "the threads allocate meanwhile");
    // The system lives until the process ends, so its memory is freed here.
    let end = "(set! ended #t) (for-each thread-join! threads) (define live #f) (gc) (gc)";
    session.eval(end, "bench").unwrap();
    stops.pauses_ms.sort_by(f64::total_cmp);
    stops.stops_ms.sort_by(f64::total_cmp);
    stops
}
