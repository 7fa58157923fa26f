//! Every program of the tests, the prelude and every library is compiled. The verifier must accept
//! all generated code, and must reject it once it is modified.

use crate::kernel::{Kernel, lock};
use crate::options::Options;
use crate::system::procedures::new_kernel;
use kyocho_heap::heap::ThreadContext;
use kyocho_heap::heap::{Heap, Kind, Limits, Mutator};
use kyocho_heap::value::Value;
use kyocho_library::prelude;
use kyocho_syntax::datum::Datum;
use kyocho_syntax::expander::TopLevel;
use kyocho_syntax::reader::read_all;
use kyocho_vm::compiler::code::{Code, PROLOGUE_WORDS};
use kyocho_vm::compiler::instruction::{Instruction, Role};
use kyocho_vm::compiler::{CompileError, compile, make_code, verify};
use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

struct Compiler {
    kernel: Kernel,
    m: Mutator,
}

impl Compiler {
    /// Compiles the prelude, to which all other code refers, and passes its code to `see`.
    fn new(see: &mut dyn FnMut(&Code)) -> Self {
        let limits = Limits { bytes_max: 512 << 20, ..Limits::default() };
        let heap = Heap::new(limits).unwrap();
        let mutator = Mutator::new(Arc::clone(&heap), ThreadContext::default());
        let kernel = new_kernel(Arc::clone(&heap), Options::default(), mutator).unwrap();
        let mut compiler = Self { kernel, m: Mutator::new(heap, ThreadContext::default()) };
        let system = Arc::clone(lock(&compiler.kernel.base.world).system());
        for (name, text) in prelude::SOURCES {
            for form in read_all(text, name).unwrap() {
                let forms = lock(&compiler.kernel.base.world).expand(&system, &form).unwrap();
                compiler.compile(&forms, see);
            }
        }
        compiler
    }

    /// Compiles the results of an expansion and passes all generated code to `see`.
    fn compile(&mut self, forms: &[TopLevel], see: &mut dyn FnMut(&Code)) {
        for form in forms {
            match form {
                TopLevel::Form(core) => {
                    let thunk = compile(&mut self.m, &self.kernel.builtins, core).unwrap();
                    codes_of(thunk, &mut HashSet::new(), see);
                }
                TopLevel::Ready(name) => lock(&self.kernel.base.world).library_ready(name),
            }
        }
    }

    fn compile_program(&mut self, path: &Path, see: &mut dyn FnMut(&Code)) {
        let text = std::fs::read_to_string(path).unwrap();
        let forms = read_all(&text, &path.to_string_lossy()).unwrap();
        let environment = lock(&self.kernel.base.world).program_environment(forms.first());
        for form in &forms {
            let expanded = lock(&self.kernel.base.world).expand(&environment, form);
            let expanded = expanded.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            self.compile(&expanded, see);
        }
    }

    fn compile_library(&mut self, name: &Datum, see: &mut dyn FnMut(&Code)) {
        let set = core::slice::from_ref(name);
        let (_, forms) = lock(&self.kernel.base.world).environment_of(set).unwrap();
        self.compile(&forms, see);
    }

    /// Compiles every library, and every program of the tests.
    fn compile_all(&mut self, see: &mut dyn FnMut(&Code)) {
        let mut names = lock(&self.kernel.base.world).library_names();
        names.sort();
        for name in names {
            self.compile_library(&read_all(&name, "name").unwrap()[0], see);
        }
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scheme");
        for entry in std::fs::read_dir(folder).unwrap() {
            self.compile_program(&entry.unwrap().path(), see);
        }
    }
}

/// Passes the code of a closure, and of all closures inside it, to `see`.
fn codes_of(value: Value, seen: &mut HashSet<u64>, see: &mut dyn FnMut(&Code)) {
    let code = if value.is_kind(Kind::Closure) { value.field_at(0) } else { value };
    let Some(code) = code.as_foreign::<Code>().filter(|_| seen.insert(code.to_word())) else {
        return;
    };
    see(code);
    code.constants.iter().for_each(|&constant| codes_of(constant, seen, see));
}

#[test]
fn the_verifier_accepts_all_generated_code() {
    let (mut codes, mut words) = (0, 0);
    let mut check = |code: &Code| {
        verify(code).unwrap_or_else(|fault| panic!("at {}: {}: {code:?}", fault.at, fault.what));
        codes += 1;
        words += code.instructions_end;
    };
    Compiler::new(&mut check).compile_all(&mut check);
    assert!(codes > 10_000, "{codes} procedures");
    assert!(words > 100_000, "{words} words of instructions");
}

/// The same code with different words.
fn with_words(code: &Code, words: Vec<u64>) -> Code {
    Code {
        words: words.into(),
        instructions_end: code.instructions_end,
        name: code.name,
        entries: code.entries.clone(),
        frame_slots: code.frame_slots,
        constants: code.constants.clone(),
        globals: code.globals.clone(),
        spans: code.spans.clone(),
        locals: code.locals.clone(),
    }
}

const UNKNOWN: &str = "no such instruction";

/// Invalid words for the instruction at `at`, with what is wrong in each.
fn broken(code: &Code, at: usize) -> Vec<(&'static str, u64)> {
    let word = code.words[at];
    let instruction = Instruction(word);
    let shape = instruction.opcode().unwrap().shape();
    let mut broken = vec![(UNKNOWN, word | 0xff)];
    let beyond = code.frame_slots as u64;
    for (role, shift) in [(shape.a, 16), (shape.b, 32), (shape.c, 48)] {
        let cleared = word & !(0xffff << shift);
        match role {
            Role::Read | Role::Write | Role::Base => {
                broken.push(("a slot", cleared | beyond << shift));
            }
            Role::Near => broken.push(("a near jump", cleared | 0x7fff << shift)),
            Role::Far => broken.push(("a far jump", word & 0xffff_ffff | 0x7fff_ffff << 32)),
            Role::Literal => broken.push(("a literal", word & 0xffff_ffff | 0x7fff_ffff << 32)),
            _ => {}
        }
    }
    broken
}

#[test]
fn the_verifier_finds_each_broken_instruction() {
    let mut compiler = Compiler::new(&mut |_| {});
    let mut tried = HashSet::new();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scheme");
    compiler.compile_program(&folder.join("control.scm"), &mut |code| {
        let mut at = PROLOGUE_WORDS;
        while at < code.instructions_end {
            let instruction = Instruction(code.words[at]);
            for (what, word) in broken(code, at) {
                let mut words = code.words.to_vec();
                words[at] = word;
                let fault = verify(&with_words(code, words)).expect_err(what);
                // An unknown instruction has no length, so the fault may be found in a later word
                // first.
                let is_here = fault.at == at || what == UNKNOWN;
                assert!(is_here, "{what} of {instruction:?} at {at}: found at {}", fault.at);
                tried.insert((what, instruction.opcode().unwrap() as u8));
            }
            at += instruction.length();
        }
    });
    assert!(tried.len() > 100, "{} kinds of faults", tried.len());
}

/// What the generator makes becomes an object only if the verifier takes it, in every build.
#[test]
fn faulty_code_is_an_error_of_the_form() {
    let mut compiler = Compiler::new(&mut |_| {});
    let mut good = None;
    let form = &read_all("(lambda (x) (car x))", "form").unwrap()[0];
    let system = Arc::clone(lock(&compiler.kernel.base.world).system());
    let forms = lock(&compiler.kernel.base.world).expand(&system, form).unwrap();
    compiler.compile(&forms, &mut |code| good = Some(with_words(code, code.words.to_vec())));
    let good = good.unwrap();
    let mut words = good.words.to_vec();
    words[PROLOGUE_WORDS] |= 0xff;
    let broken = with_words(&good, words);
    assert!(make_code(&mut compiler.m, good).is_ok());
    let refused = make_code(&mut compiler.m, broken);
    assert!(matches!(refused, Err(CompileError::Faulty(_))), "{refused:?}");
}
