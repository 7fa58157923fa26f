mod beside;
mod ephemerons;
mod guardians;
mod helped;
mod model;
mod paced;
mod parallel;
mod swept;

use super::marks::BLOCK_BYTES;
use super::object::{FLAG_WIDE, GRANULE_BYTES};
use super::word::WORD_BYTES;
use super::{ForeignObject, Heap, Kind, Limits, Marker, Mutator, OutOfMemory, Torture};
use crate::heap::ThreadContext;
use crate::value::Value;
use core::panic::AssertUnwindSafe;
use kyocho_sys::prim::atomic::{AtomicUsize, Ordering};
use std::panic::{catch_unwind, resume_unwind};
use std::sync::Arc;

fn mutator(limits: Limits) -> Mutator {
    Mutator::new(Heap::new(limits).unwrap(), ThreadContext::default())
}

fn small() -> Limits {
    Limits { bytes_max: 4 << 20, first_collection_bytes: 1 << 20, ..Limits::default() }
}

fn torture() -> Limits {
    Limits { torture: Some(Torture::ALWAYS), ..small() }
}

fn numbers(m: &mut Mutator, count: i64) -> Value {
    let items: Vec<Value> = (0..count).map(Value::fixnum).collect();
    m.list(&items).unwrap()
}

fn sum(mut list: Value) -> i64 {
    let mut total = 0;
    while let Some((car, cdr)) = list.uncons() {
        total += car.as_fixnum().unwrap();
        list = cdr;
    }
    total
}

#[test]
fn objects_contain_the_values_they_were_made_of() {
    let m = mutator(small());
    let pair = m.cons(Value::fixnum(1), Value::TRUE).unwrap();
    assert_eq!(pair.uncons(), Some((Value::fixnum(1), Value::TRUE)));
    let vector = m.vector(5000, pair).unwrap();
    assert_eq!(vector.vector_length(), Some(5000));
    assert_eq!(vector.vector_ref(4999), Some(pair));
    assert_eq!(vector.vector_ref(5000), None);
    assert_eq!(m.flonum(1.5).unwrap().as_flonum(), Some(1.5));
    for text in ["", "plain", "übung ÿ", "日本語 mixed"] {
        let string = m.string(text).unwrap();
        assert_eq!(string.to_text().as_deref(), Some(text));
        let chars: Vec<char> = text.chars().collect();
        assert_eq!(string.string_length(), Some(chars.len()));
        for (i, &c) in chars.iter().enumerate() {
            assert_eq!(string.string_ref(i), Some(c));
        }
        assert_eq!(string.string_ref(chars.len()), None);
    }
    let bytes: Vec<u8> = (0..=255).collect();
    assert_eq!(m.bytevector(&bytes).unwrap().to_bytes(), Some(bytes));
    let record = m.record(Value::TRUE, &[pair]).unwrap();
    assert_eq!(record.kind(), Some(Kind::Record));
    assert_eq!((record.field(1), record.field(2)), (Some(pair), None));
}

#[test]
fn reachable_objects_survive_a_collection_and_other_memory_is_reused() {
    let mut m = mutator(small());
    let kept = numbers(&mut m, 1000);
    for _ in 0..200 {
        numbers(&mut m, 1000);
        if m.heap.collection_wanted() {
            m.heap.collect(|marker| marker.mark(kept));
        }
    }
    assert!(m.heap.statistics().collections >= 2);
    let last = m.heap.collect(|marker| marker.mark(kept));
    assert_eq!(last.live_bytes, 16_000);
    assert_eq!(sum(kept), 499_500);
    assert!(m.heap.statistics().used_bytes < 64 << 10);
}

#[test]
fn an_aborted_collection_frees_no_live_object() {
    let mut m = mutator(small());
    // Blocks with holes: every second list is garbage.
    let lists: Vec<Value> = (0..400).map(|_| numbers(&mut m, 100)).collect();
    let kept: Vec<Value> = lists.into_iter().step_by(2).collect();
    m.heap.collect(|marker| kept.iter().for_each(|&list| marker.mark(list)));
    numbers(&mut m, 100);
    let heap = Arc::clone(&m.heap);
    let given_up = || heap.collect(|_| resume_unwind(Box::new("before anything is marked")));
    assert!(catch_unwind(AssertUnwindSafe(given_up)).is_err());
    for _ in 0..40_000 {
        m.cons(Value::TRUE, Value::NIL).unwrap();
    }
    assert!(kept.iter().all(|&list| sum(list) == 4950));
}

#[test]
fn the_limit_is_an_error_and_a_collection_helps() {
    let m = mutator(small());
    let mut list = Value::NIL;
    let error = loop {
        match m.cons(Value::TRUE, list) {
            Ok(pair) => list = pair,
            Err(error) => break error,
        }
    };
    assert_eq!(error, OutOfMemory);
    assert!(m.vector(100, Value::NIL).is_err() && m.vector(100_000, Value::NIL).is_err());
    assert!(m.heap.collection_wanted());
    m.heap.collect(|_| ());
    assert!(m.cons(Value::TRUE, Value::NIL).is_ok());
    assert!(m.vector(100_000, Value::NIL).is_ok());
}

#[test]
fn an_object_across_two_blocks_keeps_both() {
    const WORDS: usize = 1200;
    let m = mutator(Limits {
        torture: Some(Torture { every: u64::MAX, phase: 1, concurrent: false }),
        ..small()
    });
    let base = super::lock(&m.heap.space).base();
    let block_of = |address: usize| (address - base) / BLOCK_BYTES;
    // One run of several adjacent blocks.
    m.heap.refill(&m.cells, 1, 5 * BLOCK_BYTES / GRANULE_BYTES).unwrap();
    let astride = core::iter::repeat_with(|| m.vector(WORDS, Value::TRUE).unwrap())
        .take(12)
        .find(|it| block_of(it.address()) != block_of(it.address() + WORDS * WORD_BYTES))
        .expect("a vector lies across a boundary");
    m.heap.collect(|marker| marker.mark(astride));
    for i in 0..WORDS {
        assert_eq!(astride.vector_ref(i), Some(Value::TRUE), "element {i}");
    }
}

#[test]
fn an_object_larger_than_a_block_is_not_cut_from_a_cache() {
    const WORDS: usize = BLOCK_BYTES / WORD_BYTES + 100;
    let m = mutator(Limits {
        torture: Some(Torture { every: u64::MAX, phase: 1, concurrent: false }),
        ..small()
    });
    m.heap.refill(&m.cells, 1, 5 * BLOCK_BYTES / GRANULE_BYTES).unwrap();
    let vector = m.vector(WORDS, Value::TRUE).unwrap();
    m.heap.collect(|marker| marker.mark(vector));
    for i in 0..WORDS {
        assert_eq!(vector.vector_ref(i), Some(Value::TRUE), "element {i}");
    }
}

#[test]
fn the_unused_rest_of_a_block_for_long_objects_counts_neither_as_taken_nor_as_returned() {
    const BYTES: usize = BLOCK_BYTES / 2 + GRANULE_BYTES;
    let m = mutator(small());
    let mut space = super::lock(&m.heap.space);
    let before = space.taken_bytes;
    for _ in 0..4 {
        space.cut_wide(BYTES).unwrap();
    }
    assert_eq!(space.taken_bytes - before, 4 * BYTES);
}

#[test]
fn a_cache_gets_exactly_as_much_as_requested() {
    let m = mutator(small());
    let cells = m.heap.cells(None);
    for want in [1, 2, 7, 100, 4096] {
        m.heap.refill(&cells, 1, want).unwrap();
        assert_eq!(cells.remaining(), want);
        for _ in 0..want {
            assert!(cells.try_cons(Value::NIL, Value::NIL).is_some());
        }
        assert_eq!(cells.try_cons(Value::NIL, Value::NIL), None);
    }
    assert_eq!(cells.taken(), 1 + 2 + 7 + 100 + 4096);
}

#[test]
fn a_collection_takes_caches_back_and_counts_them_as_stranded() {
    let m = mutator(small());
    let cells = m.heap.cells(None);
    m.heap.refill(&cells, 1, 500).unwrap();
    let kept = cells.try_cons(Value::TRUE, Value::NIL).unwrap();
    let done = m.heap.collect(|marker| marker.mark(kept));
    assert_eq!(done.stranded_cells, 499);
    assert_eq!(cells.remaining(), 0);
    assert_eq!(kept.car(), Some(Value::TRUE));
}

struct Counted(Arc<AtomicUsize>, Value);

impl ForeignObject for Counted {
    fn trace(&self, marker: &mut Marker) {
        marker.mark(self.1);
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn foreign_objects_are_traced_and_dropped_once() {
    let dropped = Arc::new(AtomicUsize::new(0));
    let mut m = mutator(torture());
    let held = numbers(&mut m, 10);
    let kept = m.foreign(Box::new(Counted(Arc::clone(&dropped), held))).unwrap();
    for _ in 0..3 {
        m.foreign(Box::new(Counted(Arc::clone(&dropped), Value::NIL))).unwrap();
    }
    assert_eq!(m.heap.collect(|marker| marker.mark(kept)).foreign_dropped, 3);
    assert_eq!(dropped.load(Ordering::SeqCst), 3);
    assert_eq!(sum(kept.as_foreign::<Counted>().unwrap().1), 45);
    drop(m);
    assert_eq!(dropped.load(Ordering::SeqCst), 4);
}

#[test]
fn freed_memory_is_returned_to_the_host() {
    let limits = Limits { bytes_max: 256 << 20, first_collection_bytes: 1 << 20, ..small() };
    let m = mutator(limits);
    let mut kept = Value::NIL;
    for _ in 0..64 {
        let vector = m.vector(1 << 17, Value::NIL).unwrap();
        kept = m.cons(vector, kept).unwrap();
    }
    assert!(m.heap.statistics().resident_bytes >= 64 << 20);
    m.heap.collect(|marker| marker.mark(kept));
    assert!(m.heap.statistics().resident_bytes >= 64 << 20);
    m.heap.collect(|_| ());
    assert!(m.heap.statistics().resident_bytes <= 2 << 20);
    let vector = m.vector(1 << 17, Value::NIL).unwrap();
    assert_eq!(vector.vector_ref((1 << 17) - 1), Some(Value::NIL));
}

#[test]
fn as_much_free_memory_is_kept_as_was_taken_since_the_last_collection() {
    let limits = Limits { bytes_max: 256 << 20, first_collection_bytes: 1 << 20, ..small() };
    let m = mutator(limits);
    for _ in 0..16 {
        m.vector(1 << 17, Value::NIL).unwrap();
    }
    m.heap.collect(|_| ());
    let kept = m.heap.statistics().resident_bytes;
    assert!((16 << 20..18 << 20).contains(&kept), "{kept}");
    m.heap.collect(|_| ());
    assert!(m.heap.statistics().resident_bytes <= 2 << 20);
}

#[test]
fn excessive_sizes_are_out_of_memory() {
    let m = mutator(small());
    for size in [usize::MAX, usize::MAX / 8, 1 << 45, 1 << 40] {
        assert_eq!(m.vector(size, Value::NIL), Err(OutOfMemory));
        assert_eq!(m.buffer(size, FLAG_WIDE), Err(OutOfMemory));
        assert_eq!(m.object(Kind::Bytevector, 0, size), Err(OutOfMemory));
    }
}

#[test]
fn a_threads_unused_cells_are_returned_when_it_ends() {
    let m = mutator(small());
    let used = |m: &Mutator| m.heap.statistics().used_bytes;
    for _ in 0..1000 {
        let cells = m.heap.cells(None);
        m.heap.refill(&cells, 1, 2000).unwrap();
    }
    assert!(used(&m) <= 64 << 10, "{}", used(&m));
}

/// Fills a cache with runs of one cell, none adjacent to another, like those of a heap full of live
/// lists.
fn fill_with_short_runs(m: &Mutator) {
    let words = Arc::clone(m.cells.words());
    while words.room() > 0 {
        m.heap.refill_words(&words, 1, 1).unwrap();
        let neighbour = Mutator::new(m.heap.clone(), ThreadContext::default());
        neighbour.heap.refill(&neighbour.cells, 1, 1).unwrap();
        let _ = neighbour.cells.try_cons(Value::NIL, Value::NIL).unwrap();
    }
}

#[test]
fn one_refill_adds_a_run_that_is_long_enough() {
    for words in [6, 20, 500] {
        let m = mutator(small());
        fill_with_short_runs(&m);
        assert!(m.cells.try_object(Kind::Closure, 0, words).is_none());
        m.heap.refill(&m.cells, words / 2 + 1, 16).expect("there is enough memory");
        assert!(m.cells.try_object(Kind::Closure, 0, words).is_some(), "{words} words");
    }
}

#[test]
fn in_a_heap_full_of_holes_a_run_is_found_or_memory_is_out() {
    let m = mutator(small());
    let mut kept = Vec::new();
    while let Ok(pair) = m.cons(Value::NIL, Value::NIL) {
        kept.push(pair);
    }
    // One pair in every line is alive, so each hole is shorter than a line.
    m.heap.collect(|marker| kept.iter().step_by(8).for_each(|&pair| marker.mark(pair)));
    let refilled = m.heap.refill(&m.cells, 64, 64);
    let made = m.cells.try_object(Kind::Closure, 0, 120);
    assert_eq!(refilled.is_ok(), made.is_some());
}

/// Has bytes outside the heap, and a value.
#[derive(Debug)]
struct Holder(Value);

impl ForeignObject for Holder {
    fn trace(&self, marker: &mut Marker) {
        marker.hold(1000);
        marker.mark(self.0);
    }

    fn held_bytes(&self) -> usize {
        10_000
    }
}

#[test]
fn live_bytes_are_counted_once_whatever_the_size_of_the_mark_stack() {
    // Rows that refer to pairs, vectors of several lengths, Rust objects and ephemerons, each
    // adjacent to others in its block.
    let build = |m: &mut Mutator| {
        let rows: Vec<Value> = (0..200)
            .map(|i| {
                let list = numbers(m, 5);
                let short = m.vector(3, list).unwrap();
                let long = m.vector(600, short).unwrap();
                let pair = m.cons(list, short).unwrap();
                let holder = m.foreign(Box::new(Holder(pair))).unwrap();
                let ephemeron = m.ephemeron(holder, long).unwrap();
                m.vector_of(&[Value::fixnum(i), ephemeron, holder, pair]).unwrap()
            })
            .collect();
        m.vector_of(&rows).unwrap()
    };
    let counted = |mark_stack_max: usize| {
        let mut m = mutator(Limits { mark_stack_max, ..small() });
        let kept = build(&mut m);
        let mut known_bytes = 0;
        let done = m.heap.collect(|marker| {
            marker.mark(kept);
            marker.run();
            known_bytes = marker.known_bytes();
        });
        (done, known_bytes)
    };
    let (whole, known_bytes) = counted(1 << 20);
    assert_eq!(whole.mark_overflows, 0);
    assert_eq!(known_bytes, whole.live_bytes + 200 * 11_000);
    for mark_stack_max in [1, 2, 3, 10, 100] {
        let (done, known) = counted(mark_stack_max);
        assert!(done.mark_overflows > 0);
        assert_eq!((done.live_bytes, known), (whole.live_bytes, known_bytes), "{mark_stack_max}");
    }
}
