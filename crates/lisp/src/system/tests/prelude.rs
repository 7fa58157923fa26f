//! Expressions and their printed results, on a machine without threads.

use crate::kernel::{Kernel, lock};
use crate::system::forms::{Source, read_all};
use crate::system::procedures::new_kernel;
use kyocho_heap::heap::ThreadContext;
use kyocho_heap::heap::{Heap, Limits, Mutator};
use kyocho_heap::value::Value;
use kyocho_library::prelude::SOURCES;
use kyocho_library::printer;
use kyocho_syntax::environment::Environment;
use kyocho_vm::machine::{Exit, Machine, condition};
use std::sync::Arc;

struct Driver {
    kernel: Kernel,
    environment: Arc<Environment>,
}

impl Driver {
    fn new() -> Self {
        let limits = Limits { bytes_max: 256 << 20, ..Limits::default() };
        let heap = Heap::new(limits).unwrap();
        let mutator = Mutator::new(Arc::clone(&heap), ThreadContext::default());
        let kernel = new_kernel(heap, crate::options::Options::default(), mutator).unwrap();
        let system = Arc::clone(lock(&kernel.base.world).system());
        let mut driver = Self { kernel, environment: system };
        for (name, text) in SOURCES {
            driver.eval(text, name).unwrap();
        }
        driver.environment = lock(&driver.kernel.base.world).interaction_environment();
        driver
    }

    fn eval(&self, text: &str, name: &str) -> Result<String, String> {
        let source = Source::new(Arc::clone(&self.environment), read_all(text, name));
        let heap = Arc::clone(&self.kernel.heap);
        let mut mutator = Mutator::new(heap, ThreadContext::default());
        let mut last = String::new();
        let message = |object| printer::to_message(object);
        loop {
            match source.next_alone(&self.kernel, &self.kernel.base, &mut mutator) {
                Ok(Some(thunk)) => last = message(self.call(thunk).map_err(message_of)?),
                Ok(None) => return Ok(last),
                Err(raise) => return Err(message_of(condition::object_of(&mut mutator, raise))),
            }
        }
    }

    fn call(&self, thunk: Value) -> Result<Value, Value> {
        let heap = Arc::clone(&self.kernel.heap);
        let hooks = Arc::clone(&self.kernel.hooks);
        let mut machine = Machine::new(heap, hooks, ThreadContext::default(), 64 << 20, thunk);
        loop {
            match machine.run() {
                Exit::Refill(cells) => {
                    self.kernel.heap.refill(&machine.mutator.cells, cells, 256).unwrap();
                }
                Exit::Finished => return Ok(machine.outcome().value()),
                Exit::Uncaught => return Err(machine.outcome().value()),
                // The expressions allocate too little to need a collection.
                _ => {}
            }
        }
    }
}

/// The message and irritants of a condition.
fn message_of(object: Value) -> String {
    let field = |i| object.field(i).unwrap_or(Value::FALSE);
    let message = field(1).to_text().unwrap_or_default();
    format!("{message} {}", printer::to_message(field(2)))
}

fn check(lines: &[(&str, &str)]) {
    let driver = Driver::new();
    for (source, expected) in lines {
        let printed = driver.eval(source, "test").unwrap_or_else(|message| message);
        assert_eq!(&printed, expected, "{source}");
    }
}

#[test]
fn lists() {
    check(&[
        ("(map + '(1 2 3) '(10 20 30))", "(11 22 33)"),
        ("(map (lambda (x) (* x x)) '(1 2 3))", "(1 4 9)"),
        ("(map + '(1 2) '(1 2 3) '(1 2 3 4))", "(3 6)"),
        ("(map car '(1 . 2))", "car: first argument must be a pair (1)"),
        ("(let ((n 0)) (for-each (lambda (x y) (set! n (+ n (* x y)))) '(1 2) '(3 4)) n)", "11"),
        ("(length (map (lambda (x) x) (iota 200000)))", "200000"),
        ("(member 2.0 '(1 2 3) =)", "(2 3)"),
        ("(member (list 1) '(0 (1)))", "((1))"),
        ("(assoc 2.0 '((1 a) (2 b)) =)", "(2 b)"),
        ("(filter odd? '(1 2 3 4 5))", "(1 3 5)"),
        ("(call-with-values (lambda () (partition odd? '(1 2 3))) list)", "((1 3) (2))"),
        ("(fold cons '() '(1 2 3))", "(3 2 1)"),
        ("(fold + 0 '(1 2) '(10 20))", "33"),
        ("(fold-right cons '() '(1 2 3))", "(1 2 3)"),
        ("(fold-right list 0 '(1 2) '(3 4))", "(1 3 (2 4 0))"),
        ("(fold-left list '() '(1 2 3))", "(((() 1) 2) 3)"),
        ("(reduce max 0 '(3 9 2))", "9"),
        ("(reduce - 0 '(1 2 3 4))", "2"),
        ("(reduce-right append '() '((1) (2) (3)))", "(1 2 3)"),
        ("(append-map (lambda (x) (list x x)) '(1 2))", "(1 1 2 2)"),
        ("(filter-map (lambda (x) (and (even? x) (* x x))) '(1 2 3 4))", "(4 16)"),
        ("(delete 2 '(1 2 3 2))", "(1 3)"),
        ("(delete-duplicates '(1 2 1 3 2))", "(1 2 3)"),
        ("(find even? '(1 2 3))", "2"),
        ("(find-tail even? '(1 2 3))", "(2 3)"),
        ("(list-index even? '(1 3 4))", "2"),
        ("(any (lambda (x y) (> x y)) '(1 5) '(2 3))", "#t"),
        ("(every positive? '(1 2 3))", "#t"),
        ("(every (lambda (x) x) '())", "#t"),
        ("(count even? '(1 2 4))", "2"),
        ("(take-while even? '(2 4 5 6))", "(2 4)"),
        ("(drop-while even? '(2 4 5 6))", "(5 6)"),
        ("(call-with-values (lambda () (span even? '(2 5 6))) list)", "((2) (5 6))"),
        ("(unfold (lambda (x) (> x 3)) (lambda (x) (* x x)) (lambda (x) (+ x 1)) 1)", "(1 4 9)"),
        ("(list-tabulate 4 (lambda (i) (* i i)))", "(0 1 4 9)"),
        ("(append! (list 1 2) '() (list 3) '(4))", "(1 2 3 4)"),
        ("(reverse! (list 1 2 3))", "(3 2 1)"),
        ("(zip '(1 2) '(a b))", "((1 a) (2 b))"),
        ("(list= = '(1 2) '(1 2) '(1 2))", "#t"),
        ("(alist-delete 'a '((a . 1) (b . 2)))", "((b . 2))"),
        ("(lset-adjoin eq? '(a b) 'c 'a)", "(c a b)"),
        ("(lset-intersection eq? '(a b c) '(c b d))", "(b c)"),
        ("(lset-difference eqv? '(1 2 3) '(2))", "(1 3)"),
        ("(lset= eq? '(a b) '(b a))", "#t"),
        ("(let ((c (circular-list 1 2))) (list-ref c 101))", "2"),
        ("(pair-fold cons '() '(1 2))", "((2) (1 2))"),
        ("(call-with-values (lambda () (unzip2 '((1 a) (2 b)))) list)", "((1 2) (a b))"),
    ]);
}

#[test]
fn numbers_of_two_values() {
    check(&[
        ("(call-with-values (lambda () (exact-integer-sqrt 17)) list)", "(4 1)"),
        ("(call-with-values (lambda () (floor/ -5 2)) list)", "(-3 1)"),
        ("(call-with-values (lambda () (truncate/ -5 2)) list)", "(-2 -1)"),
        ("(rationalize 3/10 1/10)", "1/3"),
        ("(rationalize .3 1/10)", "0.3333333333333333"),
        ("(rationalize -3/10 1/10)", "-1/3"),
        ("(rationalize 1/10 2/10)", "0"),
    ]);
}

#[test]
fn sorting() {
    check(&[
        ("(list-sort < '(3 1 2))", "(1 2 3)"),
        ("(sort '(3 1 2) >)", "(3 2 1)"),
        ("(sort (vector 3 1 2) <)", "#(1 2 3)"),
        ("(vector-sort < #(3 1 2))", "#(1 2 3)"),
        ("(let ((v (vector 5 4 3))) (vector-sort! v <) v)", "#(3 4 5)"),
        (
            "(list-sort (lambda (a b) (< (car a) (car b))) '((1 . a) (0 . b) (1 . c) (0 . d)))",
            "((0 . b) (0 . d) (1 . a) (1 . c))",
        ),
        ("(list-sort < '())", "()"),
        (
            "(let ((l (map (lambda (i) (modulo (* i 7919) 10007)) (iota 10007)))) \
            (equal? (list-sort < l) (iota 10007)))",
            "#t",
        ),
        ("(let ((l '(3 1 2))) (list-sort < l) l)", "(3 1 2)"),
        ("(list-sorted? < '(1 1 2))", "#t"),
        ("(list-merge < '(1 3) '(2 4))", "(1 2 3 4)"),
    ]);
}

#[test]
fn vectors_and_strings() {
    check(&[
        ("(vector-map + #(1 2) #(10 20 30))", "#(11 22)"),
        ("(vector-map (lambda (x) (* x x)) #(1 2 3))", "#(1 4 9)"),
        ("(let ((s 0)) (vector-for-each (lambda (x) (set! s (+ s x))) #(1 2 3)) s)", "6"),
        ("(vector-binary-search #(1 3 5) 3 -)", "1"),
        ("(vector-fold + 0 #(1 2 3))", "6"),
        ("(vector-index even? #(1 3 4))", "2"),
        ("(vector-tabulate (lambda (i) (* i i)) 4)", "#(0 1 4 9)"),
        ("(string-map char-upcase \"abc\")", "\"ABC\""),
        ("(string-map (lambda (a b) (if (char<? a b) b a)) \"adc\" \"bbbz\")", "\"bdc\""),
        (
            "(let ((l '())) (string-for-each (lambda (c) (set! l (cons c l))) \"ab\") l)",
            "(#\\b #\\a)",
        ),
        ("(string-index \"hello\" char-upper-case?)", "#f"),
        ("(string-index \"heLlo\" char-upper-case?)", "2"),
        ("(string-index \"hello\" #\\l 3)", "3"),
        ("(string-count \"banana\" #\\a)", "3"),
        ("(string-split \"a b  c\" #\\space)", "(\"a\" \"b\" \"\" \"c\")"),
        ("(string-split \"a1b22c\" char-numeric?)", "(\"a\" \"b\" \"\" \"c\")"),
        ("(string-tokenize \" a bc  d \")", "(\"a\" \"bc\" \"d\")"),
        ("(string-trim-both \"  x \")", "\"x\""),
        ("(string-trim \"  x \")", "\"x \""),
        ("(string-trim-right \"xyy\" #\\y)", "\"x\""),
        ("(string-filter char-numeric? \"a1b2\")", "\"12\""),
    ]);
}

#[test]
fn ports() {
    check(&[
        ("(with-output-to-string (lambda () (write 'a) (display \"b\")))", "\"ab\""),
        ("(call-with-output-string (lambda (p) (write \"x\" p)))", "\"\\\"x\\\"\""),
        (
            "(call-with-input-string \"(1 2) 3\" (lambda (p) (list (read p) (read p) (eof-object? (read p)))))",
            "((1 2) 3 #t)",
        ),
        ("(with-input-from-string \"xyz\" (lambda () (read-char) (peek-char)))", "#\\y"),
        (
            "(let ((p (open-input-string \"x\"))) (call-with-port p read-char) (input-port-open? p))",
            "#f",
        ),
        (
            "(parameterize ((current-output-port 1)) 1)",
            "current-output-port: first argument must be an output port (1)",
        ),
        ("(eq? (current-output-port) (current-output-port))", "#t"),
        ("(textual-port? (current-error-port))", "#t"),
    ]);
}

#[test]
fn native_hash_tables() {
    check(&[
        (
            "(define t (make-hash-table)) (hash-table-set! t '(a) 1) (hash-table-set! t \"b\" 2) \
          (list (hash-table-ref/default t (list 'a) 0) (hash-table-ref t \"b\") (hash-table-size t))",
            "(1 2 2)",
        ),
        ("(hash-table-ref t 'none)", "hash-table-ref: no association for key (none)"),
        ("(hash-table-ref t 'none (lambda () 'failed))", "failed"),
        ("(hash-table-ref t \"b\" (lambda () 'failed) list)", "(2)"),
        ("(hash-table-ref 5 1)", "hash-table-ref: first argument must be a hash table (5)"),
        ("(hash-table-update! t \"b\" (lambda (x) (+ x 40))) (hash-table-ref t \"b\")", "42"),
        ("(hash-table-update!/default t 'n (lambda (x) (+ x 1)) 0) (hash-table-ref t 'n)", "1"),
        ("(hash-table-update! t 'm list (lambda () 7)) (hash-table-ref t 'm)", "(7)"),
        ("(hash-table-delete! t 'm 'n 'none)", "2"),
        ("(hash-table-contains? t 'm)", "#f"),
        ("(hash-table-keys t)", "((a) \"b\")"),
        ("(hash-table->alist t)", "(((a) . 1) (\"b\" . 42))"),
        ("(hash-table-fold t (lambda (k v s) (+ v s)) 0)", "43"),
        ("(hash-table-fold (lambda (k v s) (+ v s)) 0 t)", "43"),
        (
            "(let ((u (hash-table-copy t))) (hash-table-clear! t) (list (hash-table-size t) (hash-table-size u)))",
            "(0 2)",
        ),
        (
            "(let ((t (make-hash-table string=?))) (hash-table-set! t 'a 1))",
            "hash-table-set!: second argument must be a string (a)",
        ),
        (
            "(hash-table-map->list cons (alist->hash-table '((a . 1) (b . 2) (a . 3)) eq?))",
            "((a . 1) (b . 2))",
        ),
        ("(hash-table->alist (hash-table eqv? 1 'one 2 'two))", "((1 . one) (2 . two))"),
        (
            "(let ((a (hash-table eqv? 1 2)) (b (hash-table eqv? 1 3 4 5))) \
            (hash-table->alist (hash-table-union! a b)))",
            "((1 . 2) (4 . 5))",
        ),
        ("(hash-table=? = (hash-table eqv? 1 2) (hash-table eqv? 1 2))", "#t"),
        (
            "(let ((t (hash-table eqv? 1 2 3 4))) (hash-table-prune! (lambda (k v) (= k 1)) t) (hash-table-keys t))",
            "(3)",
        ),
        (
            "(let ((t (make-hash-table eqv?))) (hash-table-intern! t 1 (lambda () 'new)) (hash-table-ref t 1))",
            "new",
        ),
        ("(eq? (hash-table-equivalence-function (make-hash-table equal?)) equal?)", "#t"),
    ]);
}

#[test]
fn custom_hash_tables() {
    check(&[
        (
            "(define t (make-hash-table string-ci=?)) (hash-table-set! t \"Key\" 1) \
          (hash-table-set! t \"KEY\" 2) (list (hash-table-size t) (hash-table-ref t \"key\"))",
            "(1 2)",
        ),
        ("(hash-table-ref/default t \"other\" 'no)", "no"),
        (
            "(hash-table-update!/default t \"kEy\" (lambda (x) (+ x 1)) 0) (hash-table->alist t)",
            "((\"kEy\" . 3))",
        ),
        ("(hash-table-contains? t \"KEY\")", "#t"),
        ("(hash-table-delete! t \"keY\")", "1"),
        ("(hash-table-empty? t)", "#t"),
        ("(let ((t (make-hash-table =))) (hash-table-set! t 1 'a) (hash-table-ref t 1.0))", "a"),
        // All keys have the same hash, and a key equals a hash.
        (
            "(define u (make-hash-table (lambda (a b) (= (modulo a 10) (modulo b 10))) (lambda (x) 7))) \
          (for-each (lambda (i) (hash-table-set! u i i)) (iota 25)) \
          (list (hash-table-size u) (hash-table-ref u 107) (hash-table-ref u 7))",
            "(10 17 17)",
        ),
        ("(hash-table-size (hash-table-copy u))", "10"),
        (
            "(guard (e (#t (error-object-message e))) (make-hash-table (lambda (a b) #t)))",
            "\"make-hash-table: second argument must be a hash function for this equivalence\"",
        ),
    ]);
}

/// Every name that a built-in library exports is defined.
#[test]
fn libraries_export_what_exists() {
    let driver = Driver::new();
    for library in ["base", "char", "cxr", "file", "inexact", "read", "time", "write"] {
        driver.eval(&format!("(import (scheme {library}))"), "test").unwrap();
    }
    for library in [1, 69, 125] {
        driver.eval(&format!("(import (srfi {library}))"), "test").unwrap();
    }
}
