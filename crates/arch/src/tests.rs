//! The stack switch, the kernel-thread words and the table of sequences, on one or two kernel
//! threads.
#![expect(unsafe_code, reason = "switches stacks")]

use core::cell::{Cell, RefCell};
use core::hint::black_box;
use core::ptr::NonNull;
use std::boxed::Box;
use std::string::{String, ToString};
use std::vec;
use std::vec::Vec;

use super::restartable::{self, Fifo, Link, NotHeld};
use super::{
    Context, current_thread_word, current_vp, prepare, set_current_thread_word, set_current_vp,
    switch,
};

/// Two stacks that switch to each other, and a log.
struct Pair {
    main: Cell<Context>,
    other: Cell<Context>,
    log: RefCell<Vec<usize>>,
}

impl Pair {
    /// From the main stack to the other.
    fn go(&self) {
        // SAFETY: `other` is suspended or prepared, and one test alone holds the pair.
        unsafe { switch(self.main.as_ptr(), self.other.get()) };
    }

    /// From the other stack back to the main one.
    fn back(&self) {
        // SAFETY: the main stack is suspended in `go`.
        unsafe { switch(self.other.as_ptr(), self.main.get()) };
    }

    fn note(&self, value: usize) {
        self.log.borrow_mut().push(value);
    }
}

/// The pair whose address was passed to an entry.
fn pair_at<'a>(argument: usize) -> &'a Pair {
    // SAFETY: `start` passes the address of a pair that outlives the stack.
    unsafe { &*(argument as *const Pair) }
}

/// Runs `entry` on a new stack until its first `back`. Returns pair and stack.
fn start(entry: unsafe extern "C" fn(usize) -> !) -> (Box<Pair>, Vec<u8>) {
    let mut stack = vec![0_u8; 256 * 1024];
    let log = RefCell::default();
    let (main, other) = (Cell::new(Context::NULL), Cell::new(Context::NULL));
    let pair = Box::new(Pair { main, other, log });
    let top = stack.as_mut_ptr_range().end;
    // SAFETY: the whole vector lies below `top` and outlives the test's use of the stack.
    pair.other.set(unsafe { prepare(top, entry, &raw const *pair as usize) });
    pair.go();
    (pair, stack)
}

unsafe extern "C" fn count_up(argument: usize) -> ! {
    let pair = pair_at(argument);
    // Values that live across the switch in callee-saved registers and on the stack.
    let (mut a, mut b, mut c, mut d, mut e, mut f, mut g) = (1, 2, 3, 4, 5, 6, 7.5_f64);
    loop {
        pair.note(a + b + c + d + e + f + g as usize);
        pair.back();
        (a, b, c, d, e, f, g) = (b, c, d, e, f, a, g + 1.0);
    }
}

#[test]
fn values_survive_switches_on_both_stacks() {
    let (pair, _stack) = start(count_up);
    let kept = (black_box(11), black_box(22.5_f64));
    for _ in 1..1000 {
        pair.go();
    }
    assert_eq!(kept, (11, 22.5));
    let expected: Vec<usize> = (0..1000).map(|turn| 21 + 7 + turn).collect();
    assert_eq!(*pair.log.borrow(), expected);
}

unsafe extern "C" fn note_alignment(argument: usize) -> ! {
    #[repr(align(16))]
    struct Aligned([u8; 16]);
    let pair = pair_at(argument);
    let local = black_box(Aligned([0; 16]));
    pair.note(local.0.as_ptr() as usize % 16);
    // Vector moves to the stack fault when it is misaligned.
    pair.note(std::format!("{:e} {:?}", 1.5e300, [1, 2, 3]).len());
    loop {
        pair.back();
    }
}

#[test]
fn entry_finds_an_aligned_stack() {
    let (pair, _stack) = start(note_alignment);
    assert_eq!(*pair.log.borrow(), [0, "1.5e300 [1, 2, 3]".len()]);
}

unsafe extern "C" fn walk_back(argument: usize) -> ! {
    let pair = pair_at(argument);
    let text = Box::new(innermost_of_the_walk());
    pair.note(Box::into_raw(text) as usize);
    loop {
        pair.back();
    }
}

#[inline(never)]
fn innermost_of_the_walk() -> String {
    std::backtrace::Backtrace::force_capture().to_string()
}

#[test]
fn backtrace_walks_to_the_entry_and_ends_there() {
    let (pair, _stack) = start(walk_back);
    // SAFETY: `walk_back` boxed it for this test.
    let text = unsafe { Box::from_raw(pair.log.borrow()[0] as *mut String) };
    let at = |name: &str| text.find(name).unwrap_or_else(|| panic!("no {name} in:\n{text}"));
    assert!(at("innermost_of_the_walk") < at("walk_back"), "{text}");
    assert!(!text.contains("backtrace_walks_to_the_entry"), "crossed to the main stack:\n{text}");
    let after_entry = &text[at("walk_back")..];
    let frames = after_entry.lines().filter(|line| !line.trim_start().starts_with("at ")).count();
    assert!(frames <= 2, "frames beyond entry and trampoline:\n{text}");
}

#[test]
fn suspended_stack_tells_where_it_goes_on() {
    let (pair, stack) = start(count_up);
    let context = pair.other.get();
    // SAFETY: it waits in `back`.
    let suspended = unsafe { context.suspended() };
    let range = stack.as_ptr_range();
    assert!(range.contains(&(suspended.sp as *const u8)));
    assert!(!range.contains(&(suspended.pc as *const u8)));
    assert!(context.stack_pointer() < suspended.sp as *mut u8);
}

unsafe extern "C" fn note_words(argument: usize) -> ! {
    let pair = pair_at(argument);
    loop {
        pair.note(current_vp() as usize);
        pair.note(current_thread_word() as usize);
        pair.back();
    }
}

fn set_words(vp: usize, word: usize) {
    // SAFETY: no sequence runs on these threads.
    unsafe { set_current_vp(vp as *mut ()) };
    // SAFETY: the word is never dereferenced.
    unsafe { set_current_thread_word(word as *mut ()) };
}

#[test]
fn resumes_on_another_kernel_thread_and_sees_its_words() {
    assert!(
        current_vp().is_null() && current_thread_word().is_null(),
        "the words must be zero at the start"
    );
    set_words(1, 2);
    let (pair, _stack) = start(note_words);
    let address = &raw const *pair as usize;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            set_words(3, 4);
            pair_at(address).go();
        });
    });
    pair_at(address).go();
    assert_eq!(*pair.log.borrow(), [1, 2, 3, 4, 1, 2]);
    set_words(0, 0);
}

#[test]
fn the_word_of_a_thread_can_be_cleared_by_another() {
    holding_the_vp(|| {
        let word = super::current_vp_word() as usize;
        std::thread::scope(|scope| {
            // SAFETY: the owner of the word waits for this thread.
            scope.spawn(|| unsafe { (word as *mut *mut ()).write(core::ptr::null_mut()) });
        });
        assert!(current_vp().is_null());
    });
}

/// The name of a virtual processor, which is never dereferenced.
const VP: NonNull<()> = NonNull::dangling();

/// Runs `body` with [`VP`] in this thread's word.
fn holding_the_vp<T>(body: impl FnOnce() -> T) -> T {
    // SAFETY: the words that tests operate on are local to one thread.
    unsafe { set_current_vp(VP.as_ptr()) };
    let value = body();
    // SAFETY: as above.
    unsafe { set_current_vp(core::ptr::null_mut()) };
    value
}

#[test]
fn sequences_compute_what_their_pseudo_code_says() {
    let mut lock = 0_u32;
    let mut word = 5_usize;
    holding_the_vp(|| {
        // SAFETY: only this test accesses the words; also below.
        assert_eq!(unsafe { restartable::test_and_set(VP, &raw mut lock) }, Ok(false));
        // SAFETY: as above.
        assert_eq!(unsafe { restartable::test_and_set(VP, &raw mut lock) }, Ok(true));
        // SAFETY: as above.
        assert_eq!(unsafe { restartable::compare_and_swap(VP, &raw mut word, 4, 9) }, Ok(5));
        // SAFETY: as above.
        assert_eq!(unsafe { restartable::compare_and_swap(VP, &raw mut word, 5, 9) }, Ok(5));
        // SAFETY: as above.
        assert_eq!(unsafe { restartable::fetch_add(VP, &raw mut word, usize::MAX) }, Ok(9));
    });
    assert_eq!((lock, word), (1, 8));
}

#[test]
fn list_and_queue_keep_their_orders() {
    let mut links: Vec<Link> = (0..3).map(|_| Link { next: core::ptr::dangling_mut() }).collect();
    let nodes: Vec<*mut Link> = links.iter_mut().map(core::ptr::from_mut).collect();
    let mut head = core::ptr::null_mut();
    let mut queue = Fifo::new();
    holding_the_vp(|| {
        for round in 0..3 {
            for &node in &nodes {
                // SAFETY: only this test accesses links, head and queue; also below.
                unsafe { restartable::push(VP, &raw mut head, node) }.unwrap();
            }
            // SAFETY: as above.
            let popped = [(); 4].map(|()| unsafe { restartable::pop(VP, &raw mut head) }.unwrap());
            assert_eq!(popped, [nodes[2], nodes[1], nodes[0], core::ptr::null_mut()], "{round}");
            for &node in &nodes {
                // SAFETY: as above.
                unsafe { restartable::enqueue(VP, &raw mut queue, node) }.unwrap();
            }
            // SAFETY: as above.
            let left =
                [(); 4].map(|()| unsafe { restartable::dequeue(VP, &raw mut queue) }.unwrap());
            assert_eq!(left, [nodes[0], nodes[1], nodes[2], core::ptr::null_mut()], "{round}");
        }
    });
}

/// Asserts that every sequence refuses and that the words do not change.
fn assert_all_refuse() {
    let (mut lock, mut word) = (0_u32, 5_usize);
    let mut link = Link { next: core::ptr::null_mut() };
    let mut head: *mut Link = core::ptr::null_mut();
    let mut queue = Fifo::new();
    let node = &raw mut link;
    // SAFETY: only this test accesses the words; also below.
    assert_eq!(unsafe { restartable::test_and_set(VP, &raw mut lock) }, Err(NotHeld));
    // SAFETY: as above.
    assert_eq!(unsafe { restartable::compare_and_swap(VP, &raw mut word, 5, 9) }, Err(NotHeld));
    // SAFETY: as above.
    assert_eq!(unsafe { restartable::fetch_add(VP, &raw mut word, 1) }, Err(NotHeld));
    // SAFETY: as above.
    assert_eq!(unsafe { restartable::push(VP, &raw mut head, node) }, Err(NotHeld));
    // SAFETY: as above.
    assert_eq!(unsafe { restartable::pop(VP, &raw mut head) }, Err(NotHeld));
    // SAFETY: as above.
    assert_eq!(unsafe { restartable::enqueue(VP, &raw mut queue, node) }, Err(NotHeld));
    // SAFETY: as above.
    assert_eq!(unsafe { restartable::dequeue(VP, &raw mut queue) }, Err(NotHeld));
    assert_eq!((lock, word, head.is_null(), queue.tail.is_null()), (0, 5, true, true));
}

#[test]
fn every_sequence_refuses_without_a_virtual_processor_and_with_another() {
    assert_all_refuse();
    set_words(VP.as_ptr() as usize + 64, 0);
    assert_all_refuse();
    set_words(0, 0);
}

#[test]
fn rewind_covers_each_range_and_nothing_else() {
    let ranges: Vec<_> = restartable::ranges().collect();
    assert!(ranges.len() >= 7, "there must be at least the seven operations");
    assert!(ranges.is_sorted_by_key(|range| range.start));
    for range in ranges {
        assert!(range.start < range.end);
        for pc in range.start..range.end {
            assert_eq!(restartable::rewind(pc), Some(range.start));
        }
        assert_eq!(restartable::rewind(range.end), None, "after the commit");
        assert_eq!(restartable::rewind(range.start - 1), None);
    }
    assert!(!restartable::contains(holding_the_vp::<()> as fn(fn()) as usize));
}

/// The fields of pc, sp and fp in the C library's type of a context.
fn registers(context: &mut libc::ucontext_t) -> [&mut u64; 3] {
    #[cfg(target_arch = "x86_64")]
    {
        let places =
            [libc::REG_RIP, libc::REG_RSP, libc::REG_RBP].map(|register| register as usize);
        let registers = context.uc_mcontext.gregs.get_disjoint_mut(places).unwrap();
        registers.map(|register| {
            // SAFETY: a signed word seen as an unsigned one.
            unsafe { &mut *core::ptr::from_mut(register).cast::<u64>() }
        })
    }
    #[cfg(target_arch = "aarch64")]
    {
        let context = &mut context.uc_mcontext;
        [&mut context.pc, &mut context.sp, &mut context.regs[29]]
    }
}

#[test]
fn context_offsets_are_the_kernels() {
    // SAFETY: the structure is plain integers, for which zero is a value.
    let mut context: libc::ucontext_t = unsafe { core::mem::zeroed() };
    for (register, value) in registers(&mut context).into_iter().zip(101..) {
        *register = value;
    }
    let at = (&raw mut context).cast();
    // SAFETY: `at` is a context; also below.
    assert_eq!(unsafe { super::pc_of(at) }, 101);
    // SAFETY: as above.
    assert_eq!(unsafe { super::sp_of(at) }, 102);
    // SAFETY: as above.
    assert_eq!(unsafe { super::fp_of(at) }, 103);
    // SAFETY: as above.
    unsafe { super::set_pc(at, 104) };
    assert_eq!(*registers(&mut context)[0], 104);
}

#[test]
fn system_call_answers_or_negates_the_error() {
    let own = std::process::id() as isize;
    // SAFETY: getpid takes nothing.
    assert_eq!(unsafe { super::system_call(libc::SYS_getpid as usize, [0; 6]) }, own);
    // SAFETY: closes no descriptor.
    let answer =
        unsafe { super::system_call(libc::SYS_close as usize, [usize::MAX, 0, 0, 0, 0, 0]) };
    assert_eq!(answer, -libc::EBADF as isize);
}
