//! Random programs, compiled and run, against a naive evaluator of core forms.

mod naive;
mod programs;

use super::inline::Builtins;
use crate::heap::{Heap, Limits, Mutator};
use crate::machine::{Exit, Machine};
use crate::printer;
use crate::syntax::expander::TopLevel;
use crate::syntax::reader::read_all;
use crate::system::Options;
use crate::system::kernel::{Kernel, lock};
use crate::thread::ThreadContext;
use naive::Naive;
use programs::Programs;
use proptest::prelude::{ProptestConfig, any, proptest};
use std::sync::Arc;

struct Both {
    kernel: Kernel,
    naive: Naive,
}

impl Both {
    fn new() -> Self {
        let heap = Heap::new(Limits::default()).unwrap();
        let mutator = Mutator::new(Arc::clone(&heap), ThreadContext::default());
        let kernel = Kernel::new(heap, Options::default(), mutator).unwrap();
        let naive = Naive::new(&lock(&kernel.base.world));
        Self { kernel, naive }
    }

    /// What the naive evaluator and the machine make of a program; with no inlined primitive too.
    fn run(&self, program: &str) -> [String; 3] {
        let data = read_all(program, "random").unwrap();
        let system = Arc::clone(lock(&self.kernel.base.world).system());
        let forms = lock(&self.kernel.base.world).expand(&system, &data[0]).unwrap();
        let [TopLevel::Form(core)] = forms.as_slice() else { panic!("one form: {program}") };
        let inlined = self.on_the_machine(&self.kernel.builtins, core);
        let called = self.on_the_machine(&Builtins::default(), core);
        [self.naive.evaluate(core).to_string(), inlined, called]
    }

    fn on_the_machine(&self, builtins: &Builtins, core: &super::Core) -> String {
        let heap = Arc::clone(&self.kernel.heap);
        let mut mutator = Mutator::new(Arc::clone(&heap), ThreadContext::default());
        let thunk = super::compile(&mut mutator, builtins, core).unwrap();
        let hooks = Arc::clone(&self.kernel.hooks);
        let mut machine =
            Machine::new(Arc::clone(&heap), hooks, ThreadContext::default(), 1 << 24, thunk);
        loop {
            match machine.run() {
                Exit::Refill(cells) => heap.refill(&machine.mutator.cells, cells, 8).unwrap(),
                // The programs are too small to fill a heap.
                Exit::Collect => {}
                Exit::Finished(value) => return printer::to_message(value),
                other => panic!("{other:?}"),
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn the_machine_agrees_with_a_naive_evaluator(seed in any::<u64>()) {
        let both = Both::new();
        for i in 0..5 {
            let program = Programs::new(seed.wrapping_add(i)).expression();
            let [naive, inlined, called] = both.run(&program);
            assert_eq!(naive, inlined, "{}", program);
            assert_eq!(naive, called, "{}", program);
        }
    }
}
