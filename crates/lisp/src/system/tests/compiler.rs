//! Random programs, compiled and run, compared with a naive evaluator of core forms.

mod naive;
mod programs;
mod verified;

use crate::kernel::{Kernel, lock};
use crate::options::Options;
use crate::system::procedures::new_kernel;
use core::cell::Cell;
use kyocho_heap::heap::ThreadContext;
use kyocho_heap::heap::{Heap, Kind, Limits, Mutator};
use kyocho_heap::raise::{Cause, Raise, Result};
use kyocho_heap::value::Value;
use kyocho_library::printer;
use kyocho_syntax::core_form::Core;
use kyocho_syntax::expander::TopLevel;
use kyocho_syntax::reader::read_all;
use kyocho_vm::compiler::compile;
use kyocho_vm::compiler::inline::Builtins;
use kyocho_vm::machine::{Exit, Machine};
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
        let kernel = new_kernel(heap, Options::default(), mutator).unwrap();
        let naive = Naive::new(&lock(&kernel.base.world));
        Self { kernel, naive }
    }

    /// The results of the naive evaluator, of the machine, and of the machine without inlined
    /// primitives.
    fn run(&self, program: &str) -> [String; 3] {
        let data = read_all(program, "random").unwrap();
        let system = Arc::clone(lock(&self.kernel.base.world).system());
        let forms = lock(&self.kernel.base.world).expand(&system, &data[0]).unwrap();
        let [TopLevel::Form(core)] = forms.as_slice() else { panic!("one form: {program}") };
        let inlined = self.on_the_machine(&self.kernel.builtins, core);
        let called = self.on_the_machine(&Builtins::default(), core);
        [self.naive.evaluate(core).to_string(), inlined, called]
    }

    fn on_the_machine(&self, builtins: &Builtins, core: &Core) -> String {
        let mut mutator = Mutator::new(Arc::clone(&self.kernel.heap), ThreadContext::default());
        let thunk = compile(&mut mutator, builtins, core).unwrap();
        self.call(thunk)
    }

    fn call(&self, thunk: Value) -> String {
        let heap = Arc::clone(&self.kernel.heap);
        let hooks = Arc::clone(&self.kernel.hooks);
        let mut machine =
            Machine::new(Arc::clone(&heap), hooks, ThreadContext::default(), 1 << 24, thunk);
        loop {
            match machine.run() {
                Exit::Refill(cells) => heap.refill(&machine.mutator.cells, cells, 8).unwrap(),
                // The programs are too small to fill a heap.
                Exit::Collect => {}
                Exit::Finished => return printer::to_message(machine.outcome().value()),
                other => panic!("{other:?}"),
            }
        }
    }
}

/// Forms with constants and procedures of every kind. `@` is replaced by 20,000 parts.
const FORMS: &[&str] = &[
    "(list '(1.5 \"two\" #(3 4.5)) \"text\" '#0=(2.5 #0#) 6.5)",
    "((lambda (x) (list x '(a 1.5) ((lambda () '(deep 2.5))))) '(b 3.5))",
    "(letrec ((f (lambda (n) (if (< n 1) '(end 1.5) (g (- n 1))))) (g (lambda (n) (f n)))) (cons (f 3) f))",
    "(let ((make (lambda (x) (lambda () (cons x '(made 1.5))))) (y '(2.5))) (set! y (cons y '(3.5))) (list ((make y)) y))",
    "'(@)",
    "(list @)",
    "(if (car '(#t)) (begin @ '(1.5)) 'no)",
];

thread_local! {
    static KERNEL: Cell<Option<&'static Kernel>> = const { Cell::new(None) };
    static PAUSES: Cell<usize> = const { Cell::new(0) };
}

/// Collects and overwrites free memory, but not at every pause of a long form.
fn collect(m: &mut Mutator) -> Result<()> {
    PAUSES.set(PAUSES.get() + 1);
    if PAUSES.get() > 100 && !PAUSES.get().is_multiple_of(1000) {
        return Ok(());
    }
    let heap = Arc::clone(&m.heap);
    heap.collect(|marker| {
        m.context.trace(marker);
        KERNEL.get().unwrap().trace(&[], marker);
    });
    for _ in 0..20_000 {
        m.cons(Value::fixnum(-1), Value::fixnum(-1))?;
        m.object_of(Kind::Record, &[Value::fixnum(-1); 3])?;
    }
    Ok(())
}

fn give_up(_: &mut Mutator) -> Result<()> {
    Err(Raise::new(Cause::Interrupted))
}

#[test]
fn collections_may_run_during_compilation() {
    let both: &Both = Box::leak(Box::new(Both::new()));
    KERNEL.set(Some(&both.kernel));
    let system = Arc::clone(lock(&both.kernel.base.world).system());
    for form in FORMS {
        let text = form.replace(
            '@',
            &"(list 1.5 \"s\") ".repeat(if form.starts_with("(list @") { 5000 } else { 20_000 }),
        );
        let data = read_all(&text, "forms").unwrap();
        let forms = lock(&both.kernel.base.world).expand(&system, &data[0]).unwrap();
        let [TopLevel::Form(core)] = forms.as_slice() else { panic!("one form: {form}") };
        let expected = both.on_the_machine(&both.kernel.builtins, core);
        let mut mutator = Mutator::new(Arc::clone(&both.kernel.heap), ThreadContext::default());
        mutator.context.at_pause = Some(collect);
        PAUSES.set(0);
        let thunk = compile(&mut mutator, &both.kernel.builtins, core).unwrap();
        assert_eq!(both.call(thunk), expected, "{form}");
        assert!(PAUSES.get() > 3, "{form}: {} pauses", PAUSES.get());
        mutator.context.at_pause = Some(give_up);
        let given_up = compile(&mut mutator, &both.kernel.builtins, core);
        let raise = given_up.unwrap_err().into_raise(data[0].span);
        assert!(raise.is_interruption(), "{form}");
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
