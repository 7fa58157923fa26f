//! What does a cons cost, including its part of the collections?
//!
//! Baseline in the same run: the same loops in Guile, if it is installed. Unit: nanoseconds for a
//! cons, median of the repeats, with the spread. Only the ratios are meaningful.
#![expect(clippy::print_stdout, reason = "a bench reports on its output")]

use core::hint::black_box;
use kyocho_lisp::heap::{Heap, Limits, Mutator};
use kyocho_lisp::thread::ThreadContext;
use kyocho_lisp::value::Value;
use kyocho_sys::prim::clock::Instant;
use std::process::Command;

const REPEATS: usize = 5;
const GARBAGE_CONSES: usize = 20_000_000;
const TREE_DEPTH: u32 = 16;
const TREES: usize = 100;
const LIVE_DEPTH: u32 = 19;

const GUILE: &str = "
(define (garbage n) (let loop ((i 0) (l '())) (if (< i n) (loop (+ i 1) (if (= 0 (logand i 63)) '() (cons i l))) l)))
(define (tree d) (if (= d 0) '() (let* ((a (tree (- d 1))) (b (tree (- d 1)))) (cons a b))))
(define (trees n d) (if (> n 0) (begin (tree d) (trees (- n 1) d))))
(define (timed name conses thunk)
  (let ((t (get-internal-real-time))) (thunk)
    (format #t \"~a ~a~%\" name (/ (* 1e9 (/ (- (get-internal-real-time) t) internal-time-units-per-second 1.0)) conses))))
(define live (tree LIVE))
(define (repeat n) (if (> n 0) (begin
  (timed 'garbage GARBAGE (lambda () (garbage GARBAGE)))
  (timed 'trees (* TREES (expt 2 DEPTH)) (lambda () (trees TREES DEPTH))) (repeat (- n 1)))))
(repeat REPEATS)
(if (null? live) (display live))
";

struct Bench {
    m: Mutator,
    live: Value,
}

impl Bench {
    fn safepoint(&self, roots: &[Value]) {
        if self.m.heap.collection_wanted() {
            self.m.heap.collect(|marker| {
                marker.mark(self.live);
                roots.iter().for_each(|&root| marker.mark(root));
            });
        }
    }

    fn garbage(&mut self) {
        let mut list = Value::NIL;
        for i in 0..GARBAGE_CONSES {
            if i % 64 == 0 {
                list = Value::NIL;
                self.safepoint(&[]);
            }
            list = self.m.cons(Value::fixnum(i as i64), list).expect("the limit is not reached");
        }
        black_box(list);
    }

    fn tree(&mut self, depth: u32) -> Value {
        if depth == 0 {
            return Value::NIL;
        }
        let left = self.tree(depth - 1);
        let right = self.tree(depth - 1);
        self.m.cons(left, right).expect("the limit is not reached")
    }

    fn trees(&mut self) {
        for _ in 0..TREES {
            let tree = self.tree(TREE_DEPTH);
            self.safepoint(&[tree]);
        }
    }
}

fn median(mut samples: Vec<f64>) -> (f64, f64, f64) {
    samples.sort_by(f64::total_cmp);
    (samples[samples.len() / 2], samples[0], samples[samples.len() - 1])
}

fn timed(conses: usize, run: impl FnOnce()) -> f64 {
    let begin = Instant::now();
    run();
    begin.elapsed().as_nanos() as f64 / conses as f64
}

fn guile() -> Option<(Vec<f64>, Vec<f64>)> {
    let program = GUILE
        .replace("LIVE", &LIVE_DEPTH.to_string())
        .replace("GARBAGE", &GARBAGE_CONSES.to_string())
        .replace("TREES", &TREES.to_string())
        .replace("DEPTH", &TREE_DEPTH.to_string())
        .replace("REPEATS", &REPEATS.to_string());
    let path = std::env::temp_dir().join(format!("allocation-{}.scm", std::process::id()));
    std::fs::write(&path, program).ok()?;
    let output = Command::new("guile").arg("--auto-compile").arg(&path).output();
    std::fs::remove_file(&path).ok()?;
    let text = String::from_utf8(output.ok()?.stdout).ok()?;
    let samples = |name: &str| {
        let lines = text.lines().filter_map(|line| line.strip_prefix(name)?.trim().parse().ok());
        lines.collect::<Vec<f64>>()
    };
    let found = (samples("garbage"), samples("trees"));
    (found.0.len() == REPEATS && found.1.len() == REPEATS).then_some(found)
}

fn main() {
    let heap = Heap::new(Limits::default()).expect("address space for the heap");
    let m = Mutator::new(heap, ThreadContext::default());
    let mut bench = Bench { m, live: Value::NIL };
    bench.live = bench.tree(LIVE_DEPTH);
    let (mut garbage, mut trees) = (Vec::new(), Vec::new());
    for _ in 0..REPEATS {
        garbage.push(timed(GARBAGE_CONSES, || bench.garbage()));
        trees.push(timed(TREES << TREE_DEPTH, || bench.trees()));
    }
    let theirs = guile();
    println!("ns a cons, collections included: median (least..most)");
    let (guile_garbage, guile_trees) = theirs.map_or((None, None), |(g, t)| (Some(g), Some(t)));
    for (name, ours, theirs) in
        [("short lists", garbage, guile_garbage), ("trees", trees, guile_trees)]
    {
        let (middle, least, most) = median(ours);
        print!("{name:12} {middle:6.2} ({least:.2}..{most:.2})");
        match theirs.map(median) {
            Some((middle_guile, least, most)) => println!(
                "   guile {middle_guile:6.2} ({least:.2}..{most:.2})   ratio {:.2}",
                middle / middle_guile
            ),
            None => println!("   guile is not installed"),
        }
    }
    let statistics = bench.m.heap.statistics();
    println!(
        "{} collections, pause mean {:.2} ms, longest {:.2} ms, last live {} KiB held {} KiB",
        statistics.collections,
        statistics.pause_total.as_secs_f64() * 1e3 / statistics.collections.max(1) as f64,
        statistics.pause_max.as_secs_f64() * 1e3,
        statistics.last.live_bytes >> 10,
        statistics.last.held_bytes >> 10,
    );
}
