//! How many cells do threads take and not use, and how does the time slice affect that (paper 4,
//! §8)?
//!
//! `cargo bench -p kyocho-lisp --bench stranded [-- IDLE]`: 10 threads allocate all the time, until
//! each has made its lists. 10,000 others by default wait for messages, and make a short list for
//! each message. A collection takes back the unused cells of all caches: these cells are
//! *stranded*. Results by cache size, fixed and adaptive: time, stranded cells at a collection, and
//! requests for cells. The fixed size that strands least makes the most requests; the best size is
//! the one with the least time.
//!
//! Then the busy threads alone, by time slice, with two cache sizes. Baseline of all ratios, in the
//! same run: an adaptive cache, slices of 5 ms. Each configuration runs in a process of its own,
//! [`REPEATS`] times; results are medians. One virtual processor.
//!
//! With `--json` each configuration runs once and is a line of JSON; `bench/run --part stranded`
//! runs that in rounds. `--quick` makes an eighth of the lists in an eighth of the heap.
#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a bench reports, and may fail")]

use core::time::Duration;
use std::env;
use std::process::Command;
use std::time::Instant;

use kyocho_lisp::system::{CellCache, Options, Session, System};

const REPEATS: usize = 5;
const IDLE: usize = 10_000;
const BUSY: usize = 10;
const HEAP_BYTES: usize = 512 << 20;
/// Lists that a busy thread makes in each tenth of its work.
const LISTS: usize = 400;
/// By how much less there is with `--quick`, of both.
const QUICK: usize = 8;
const SIZES: [&str; 8] = ["16", "64", "256", "1024", "4096", "16384", "32768", "auto"];
const SLICES_MS: [u64; 6] = [1, 2, 5, 20, 100, 500];
/// Cache sizes with which time slices are compared.
const SLICE_CACHES: [&str; 2] = ["100", "auto"];

/// Every busy thread makes lists of 1,000 pairs. After each tenth of its work the main thread sends
/// a message to each idle thread.
const PROGRAM: &str = "
    (define ended (make-channel 1000))
    (define answers (make-channel 20000))
    (define idle
      (let loop ((n 0) (all '()))
        (if (= n IDLE) all
            (let ((messages (make-channel 1)))
              (spawn (lambda () (let loop () (channel-receive messages)
                                  (channel-send! answers (list-of 5)) (loop))))
              (loop (+ n 1) (cons messages all))))))
    (define (wake-all)
      (for-each (lambda (messages) (channel-send! messages 'go)) idle)
      (for-each (lambda (messages) (channel-receive answers)) idle))
    (define (list-of n) (let loop ((n n) (l '())) (if (= n 0) l (loop (- n 1) (cons n l)))))
    (define (work lists) (let loop ((n 0)) (if (< n lists) (begin (list-of 1000) (loop (+ n 1))))))
    (define (round lists)
      (do ((n 0 (+ n 1))) ((= n BUSY)) (spawn (lambda () (work lists) (channel-send! ended 'done))))
      (wake-all)
      (do ((n 0 (+ n 1))) ((= n BUSY)) (channel-receive ended)))
    (wake-all)
    (round 10)";

/// The results of one process.
struct Found {
    ms: f64,
    stranded: f64,
    asked: f64,
    collections: f64,
}

fn main() {
    let words: Vec<String> = env::args().skip(1).filter(|word| word != "--bench").collect();
    let is_given = |name: &str| words.iter().any(|word| word == name);
    let scale = if is_given("--quick") { QUICK } else { 1 };
    if let [one, cache, slice_ms, idle, ..] = &words[..]
        && one == "one"
    {
        return measure(cache, slice_ms.parse().unwrap(), idle.parse().unwrap(), scale);
    }
    let idle = words.iter().find_map(|word| word.parse().ok()).unwrap_or(IDLE);
    if is_given("--json") {
        lines(idle, scale);
    } else {
        tables(idle, scale);
    }
}

/// Each configuration once, a line of JSON each.
fn lines(idle: usize, scale: usize) {
    let by_cache = SIZES.map(|cache| (cache, 5, idle));
    let by_slice =
        SLICES_MS.into_iter().flat_map(|slice| SLICE_CACHES.map(|cache| (cache, slice, 0)));
    for (cache, slice_ms, idle) in by_cache.into_iter().chain(by_slice) {
        let Found { ms, stranded, asked, collections } = repeat(cache, slice_ms, idle, scale, 1);
        println!(
            "{{\"cache\": \"{cache}\", \"slice_ms\": {slice_ms}, \"busy\": {BUSY}, \"idle\": {idle}, \"ms\": {ms:.3}, \"stranded\": {stranded:.1}, \"asked\": {asked}, \"collections\": {collections}}}"
        );
    }
}

/// Medians, as two tables.
fn tables(idle: usize, scale: usize) {
    let repeat = |cache, slice_ms, idle| repeat(cache, slice_ms, idle, scale, REPEATS);
    let baseline = repeat("auto", 5, idle);
    println!(
        "{BUSY} busy threads and {idle} idle ones, one virtual processor, medians of {REPEATS} runs"
    );
    println!(
        "{:>8} {:>10} {:>8} {:>22} {:>12} {:>12}",
        "cache", "ms", "ratio", "stranded a collection", "collections", "asked"
    );
    for cache in SIZES {
        let found = repeat(cache, 5, idle);
        let ratio = found.ms / baseline.ms;
        println!(
            "{cache:>8} {:>10.1} {ratio:>8.2} {:>22.0} {:>12.0} {:>12.0}",
            found.ms, found.stranded, found.collections, found.asked
        );
    }
    let baseline = repeat("auto", 5, 0);
    println!("{BUSY} busy threads alone, by time slice");
    println!(
        "{:>8} {:>8} {:>10} {:>8} {:>22} {:>12}",
        "slice", "cache", "ms", "ratio", "stranded a collection", "asked"
    );
    for slice_ms in SLICES_MS {
        for cache in SLICE_CACHES {
            let found = repeat(cache, slice_ms, 0);
            let ratio = found.ms / baseline.ms;
            println!(
                "{slice_ms:>5} ms {cache:>8} {:>10.1} {ratio:>8.2} {:>22.0} {:>12.0}",
                found.ms, found.stranded, found.asked
            );
        }
    }
}

/// Medians over so many processes that each measure this once.
fn repeat(cache: &str, slice_ms: u64, idle: usize, scale: usize, repeats: usize) -> Found {
    let (slice, idle) = (slice_ms.to_string(), idle.to_string());
    let mut columns: [Vec<f64>; 4] = Default::default();
    for _ in 0..repeats {
        let output = Command::new(env::current_exe().unwrap())
            .args(["one", cache, &slice, &idle])
            .args((scale == QUICK).then_some("--quick"))
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).unwrap();
        let figures = text.split_whitespace().map(|word| word.parse().unwrap());
        columns.iter_mut().zip(figures).for_each(|(column, figure)| column.push(figure));
    }
    let [ms, stranded, asked, collections] = columns.map(|mut column| {
        assert_eq!(column.len(), repeats);
        column.sort_by(f64::total_cmp);
        column[repeats / 2]
    });
    Found { ms, stranded, asked, collections }
}

/// Measures one configuration in this process, and prints the results.
fn measure(cache: &str, slice_ms: u64, idle: usize, scale: usize) {
    let cell_cache = match cache.parse() {
        Ok(cells) => CellCache::Fixed(cells),
        Err(_) => CellCache::Auto,
    };
    let options = Options {
        cell_cache,
        time_slice: Some(Duration::from_millis(slice_ms)),
        virtual_processors: Some(1),
        memory_max_bytes: HEAP_BYTES / scale,
        ..Options::default()
    };
    let system = System::boot(options, &mut |_| {}).unwrap();
    let mut session = system.session();
    let program = PROGRAM.replace("IDLE", &idle.to_string()).replace("BUSY", &BUSY.to_string());
    session.eval(&program, "bench").unwrap();
    let before = system.statistics();
    let asked = asked_for_cells(&mut session);
    let begin = Instant::now();
    let work = format!("(do ((n 0 (+ n 1))) ((= n 10)) (round {}))", LISTS / scale);
    session.eval(&work, "bench").unwrap();
    let ms = begin.elapsed().as_secs_f64() * 1e3;
    let asked = asked_for_cells(&mut session) - asked;
    let after = system.statistics();
    let collections = after.collections - before.collections;
    assert!(collections > 0, "too little was allocated");
    let stranded = after.stranded_cells - before.stranded_cells;
    println!("{ms} {} {asked} {collections}", stranded as f64 / collections as f64);
}

/// Number of requests for cells: cells that did not come from a cache.
fn asked_for_cells(session: &mut Session) -> u64 {
    let text = "(apply + (map (lambda (row)
                                (if (and (eq? (vector-ref row 0) 'cons)
                                         (not (eq? (vector-ref row 1) 'cache)))
                                    (vector-ref row 2)
                                    0))
                              (system-call-statistics)))";
    session.eval(text, "bench").unwrap().values.last().unwrap().parse().unwrap()
}
