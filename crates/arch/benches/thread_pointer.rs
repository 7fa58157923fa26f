//! The cost of a block of thread-local storage for each microprocess: a stack switch that also
//! changes the thread pointer, against one that does not, in the same run. `docs/decisions` says
//! why there is no such block.
//!
//! Unit: ns. Repeats: 31 of a million each; median, 10th and 90th percentile.
#![expect(unsafe_code, reason = "switches stacks and thread pointers")]
#![expect(clippy::print_stdout, reason = "a bench prints its results")]

#[cfg(target_arch = "x86_64")]
fn main() {
    moving::run();
}

#[cfg(not(target_arch = "x86_64"))]
fn main() {
    println!("the thread pointer is moved by instructions of x86-64 here");
}

#[cfg(target_arch = "x86_64")]
mod moving {
    use core::arch::asm;
    use core::cell::Cell;
    use std::time::Instant;

    use kyocho_arch::{Context, prepare, switch};

    const REPEATS: usize = 31;
    const ROUNDS: u64 = 1_000_000;
    /// In `AT_HWCAP2`: programs may change their thread pointer (`FSGSBASE`).
    const MAY_MOVE: u64 = 2;
    /// Words of the other block; the thread pointer is in its middle.
    const BLOCK_WORDS: usize = 1024;

    /// Two stacks and their thread pointers; nothing that runs on the other one uses thread-local
    /// storage.
    struct Pair {
        main: Cell<Context>,
        other: Cell<Context>,
        main_pointer: usize,
        other_pointer: usize,
        visits: Cell<u64>,
    }

    fn thread_pointer() -> usize {
        let pointer: usize;
        // SAFETY: reads a register of this thread; the processor may, as `run` has asked.
        unsafe { asm!("rdfsbase {}", out(reg) pointer, options(nomem, nostack, preserves_flags)) };
        pointer
    }

    /// # Safety
    /// Until it is restored, nothing uses thread-local storage, or there is a block of it at
    /// `pointer`.
    unsafe fn move_thread_pointer(pointer: usize) {
        // SAFETY: guaranteed by the caller.
        unsafe { asm!("wrfsbase {}", in(reg) pointer, options(nostack, preserves_flags)) };
    }

    unsafe extern "C" fn visit(pair: usize) -> ! {
        // SAFETY: `run` keeps the pair for as long as it runs this stack.
        let pair = unsafe { &*(pair as *const Pair) };
        loop {
            pair.visits.set(pair.visits.get() + 1);
            // SAFETY: the main stack is suspended in its own switch.
            unsafe { switch(pair.other.as_ptr(), pair.main.get()) };
        }
    }

    unsafe extern "C" fn visit_moving(pair: usize) -> ! {
        // SAFETY: as above.
        let pair = unsafe { &*(pair as *const Pair) };
        loop {
            pair.visits.set(pair.visits.get() + 1);
            // SAFETY: the block of the stack that is resumed.
            unsafe { move_thread_pointer(pair.main_pointer) };
            // SAFETY: as above.
            unsafe { switch(pair.other.as_ptr(), pair.main.get()) };
        }
    }

    /// Nanoseconds of one switch: median, 10th and 90th percentile.
    fn time(mut there_and_back: impl FnMut()) -> [f64; 3] {
        let mut times: Vec<f64> = (0..REPEATS)
            .map(|_| {
                let start = Instant::now();
                (0..ROUNDS).for_each(|_| there_and_back());
                start.elapsed().as_nanos() as f64 / ROUNDS as f64 / 2.0
            })
            .collect();
        times.sort_by(f64::total_cmp);
        [REPEATS / 2, REPEATS / 10, REPEATS * 9 / 10].map(|index| times[index])
    }

    pub(super) fn run() {
        // SAFETY: asks for a word.
        let features = unsafe { libc::getauxval(libc::AT_HWCAP2) };
        if features & MAY_MOVE == 0 {
            return println!("this host does not let programs move their thread pointer");
        }
        let mut block = vec![0_usize; BLOCK_WORDS];
        let other_pointer = block[BLOCK_WORDS / 2..].as_mut_ptr() as usize;
        // The first word at the thread pointer is the pointer itself.
        block[BLOCK_WORDS / 2] = other_pointer;
        let measure = |body: unsafe extern "C" fn(usize) -> !, before: fn(&Pair)| {
            let mut stack = vec![0_u8; 64 * 1024];
            let pair = Pair {
                main: Cell::new(Context::NULL),
                other: Cell::new(Context::NULL),
                main_pointer: thread_pointer(),
                other_pointer,
                visits: Cell::new(0),
            };
            let at = &raw const pair as usize;
            // SAFETY: the vector lies below its end and outlives the measurement.
            pair.other.set(unsafe { prepare(stack.as_mut_ptr_range().end, body, at) });
            let times = time(|| {
                before(&pair);
                // SAFETY: the other stack is suspended or prepared.
                unsafe { switch(pair.main.as_ptr(), pair.other.get()) };
            });
            assert_eq!(pair.visits.get(), REPEATS as u64 * ROUNDS, "every switch must arrive");
            assert_eq!(thread_pointer(), pair.main_pointer, "the thread pointer must be restored");
            times
        };
        let [plain, low, high] = measure(visit, |_| ());
        println!("stack switch (baseline)           {plain:6.2} ns  [{low:.2}..{high:.2}]");
        let [moving, low, high] = measure(visit_moving, |pair| {
            // SAFETY: the other stack uses no thread-local storage, and restores the pointer.
            unsafe { move_thread_pointer(pair.other_pointer) };
        });
        let ratio = moving / plain;
        println!(
            "stack switch and thread pointer   {moving:6.2} ns  [{low:.2}..{high:.2}]  {ratio:.2} of baseline"
        );
    }
}
