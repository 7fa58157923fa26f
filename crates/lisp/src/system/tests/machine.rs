//! Programs and their expected results, on a machine without threads. The driver itself handles
//! refills and collections.

use crate::kernel::{Kernel, lock};
use crate::options::Options;
use crate::system::forms::{Source, read_all};
use crate::system::procedures::new_kernel;
use kyocho_heap::heap::ThreadContext;
use kyocho_heap::heap::{Heap, Limits, Mutator, Torture};
use kyocho_heap::value::Value;
use kyocho_library::prelude;
use kyocho_library::printer;
use kyocho_syntax::environment::Environment;
use kyocho_vm::machine::{Exit, Machine, condition};
use std::sync::Arc;

struct Driver {
    kernel: Kernel,
    environment: Arc<Environment>,
}

impl Driver {
    fn new(limits: Limits) -> Self {
        let heap = Heap::new(limits).unwrap();
        let mutator = Mutator::new(Arc::clone(&heap), ThreadContext::default());
        let kernel = new_kernel(heap, Options::default(), mutator).unwrap();
        let system = Arc::clone(lock(&kernel.base.world).system());
        let mut driver = Self { kernel, environment: system };
        let first = prelude::FIRST;
        for (name, text) in [first].iter().chain(prelude::SOURCES) {
            driver.eval(text, name);
        }
        driver.environment = lock(&driver.kernel.base.world).interaction_environment();
        driver
    }

    /// Runs a text. Returns the last value, or the message of the unhandled exception.
    fn eval(&self, text: &str, name: &str) -> String {
        let source = Source::new(Arc::clone(&self.environment), read_all(text, name));
        let heap = Arc::clone(&self.kernel.heap);
        let mut mutator = Mutator::new(heap, ThreadContext::default());
        let mut last = String::new();
        loop {
            match source.next_alone(&self.kernel, &self.kernel.base, &mut mutator) {
                Ok(Some(thunk)) => match self.call(thunk) {
                    Ok(value) => last = printer::to_message(value),
                    Err(message) => return message,
                },
                Ok(None) => return last,
                Err(raise) => return show(condition::object_of(&mut mutator, raise)),
            }
        }
    }

    fn call(&self, thunk: Value) -> Result<Value, String> {
        let heap = Arc::clone(&self.kernel.heap);
        let hooks = Arc::clone(&self.kernel.hooks);
        let mut machine = Machine::new(heap, hooks, ThreadContext::default(), 64 << 20, thunk);
        loop {
            match machine.run() {
                Exit::Refill(cells) => {
                    let heap = &self.kernel.heap;
                    self.collect_if_wanted(&mut machine);
                    heap.refill(&machine.mutator.cells, cells, 256).unwrap();
                }
                Exit::Collect => self.collect(&mut machine),
                Exit::Finished => return Ok(machine.outcome().value()),
                Exit::Uncaught => {
                    let trace = machine.backtrace(5);
                    assert!(!trace.is_empty());
                    return Err(show(machine.outcome().value()));
                }
                other => return Err(format!("{other:?}")),
            }
        }
    }

    fn collect_if_wanted(&self, machine: &mut Machine) {
        if self.kernel.heap.collection_wanted() {
            self.collect(machine);
        }
    }

    fn collect(&self, machine: &mut Machine) {
        self.kernel.heap.collect(|marker| {
            self.kernel.trace(&[], marker);
            machine.trace(marker);
        });
    }
}

fn show(object: Value) -> String {
    if object.kind() != Some(kyocho_heap::heap::Kind::Condition) {
        return format!("raised {}", printer::to_message(object));
    }
    let text =
        |field| printer::to_text(object.field(field).unwrap(), printer::Style::Display).unwrap();
    format!("error: {} {}", text(condition::FIELD_MESSAGE), text(condition::FIELD_IRRITANTS))
}

fn check(programs: &[(&str, &str)]) {
    let driver = Driver::new(Limits::default());
    for (program, expected) in programs {
        assert_eq!(driver.eval(program, "test"), *expected, "{program}");
    }
}

#[test]
fn constants_and_arithmetic() {
    check(&[
        ("(+ 1 2)", "3"),
        ("(- 10 3 4)", "3"),
        ("(* 2 3.5)", "7.0"),
        ("(if (< 1 2) 'yes 'no)", "yes"),
        ("(let ((x 1) (y 2)) (+ x y))", "3"),
        ("(define (f x) (* x x)) (f 12)", "144"),
        ("(quotient 17 5)", "3"),
        ("(modulo -7 2)", "1"),
        ("(car '(1 2))", "1"),
        ("(car 5)", "error: car: first argument must be a pair (5)"),
        ("(undefined-thing)", "error: unbound variable (undefined-thing)"),
    ]);
}

#[test]
fn fib() {
    check(&[("(define (fib n) (if (< n 2) n (+ (fib (- n 1)) (fib (- n 2))))) (fib 20)", "6765")]);
}

#[test]
fn loops_and_local_procedures() {
    check(&[
        ("(let loop ((i 0) (s 0)) (if (= i 10) s (loop (+ i 1) (+ s i))))", "45"),
        ("(let loop ((i 0) (a 1) (b 2)) (if (= i 3) (list a b) (loop (+ i 1) b a)))", "(2 1)"),
        ("(do ((i 0 (+ i 1)) (l '() (cons i l))) ((= i 3) l))", "(2 1 0)"),
        (
            "(define (f n) (letrec ((ev? (lambda (n) (if (= n 0) #t (od? (- n 1)))))
                                    (od? (lambda (n) (if (= n 0) #f (ev? (- n 1))))))
                             (ev? n)))
             (f 1001)",
            "#f",
        ),
        (
            "(define (f n) (define (fact n) (if (= n 0) 1 (* n (fact (- n 1))))) (fact n)) (f 20)",
            "2432902008176640000",
        ),
        ("(let ((x 1)) (define (g y) (+ x y)) (define z 5) (set! x 10) (+ z (g 1)))", "16"),
        (
            "(define (make) (let ((n 0)) (lambda () (set! n (+ n 1)) n)))
             (define a (make)) (define b (make)) (a) (a) (b) (list (a) (b))",
            "(3 2)",
        ),
        (
            "(let outer ((i 0) (acc '()))
               (if (= i 3) acc
                   (let inner ((j 0) (acc acc))
                     (if (= j 2) (outer (+ i 1) acc) (inner (+ j 1) (cons (* i j) acc))))))",
            "(2 0 1 0 0 0)",
        ),
        (
            "(let loop ((i 0) (l '()))
               (if (= i 3) (apply + (let map1 ((l l)) (if (null? l) '() (cons ((car l)) (map1 (cdr l))))))
                   (loop (+ i 1) (cons (lambda () i) l))))",
            "3",
        ),
        ("(letrec ((a (lambda () b)) (b 5)) (a))", "5"),
        ("(letrec ((a (lambda () (+ 1 (c)))) (c (lambda () 1))) (list (a) (map (lambda (x) (c)) '(1))))", "(2 (1))"),
        ("(define (f x) (define (a) (if x (+ 1 (b)) 0)) (define (b) (set! x #f) (+ 1 (a))) (a)) (f 1)", "2"),
        (
            "(letrec ((a (lambda () b)) (b (a))) b)",
            "error: variable used before its initialisation (b)",
        ),
        ("((lambda (a . rest) (list a rest)) 1 2 3)", "(1 (2 3))"),
        ("((case-lambda ((a) 1) ((a b) 2) ((a . r) 'many)) 1 2 3)", "many"),
        ("(define (g a b) a) (g 1)", "error: wrong number of arguments: g takes 2 arguments, got 1 ()"),
        ("(5 6)", "error: the object called is not a procedure (5)"),
        ("(apply + 1 2 '(3 4))", "10"),
        ("(apply list (let loop ((i 0) (l '())) (if (= i 100) l (loop (+ i 1) (cons 1 l)))))
          (length (apply list (let loop ((i 0) (l '())) (if (= i 1000) l (loop (+ i 1) (cons 1 l))))))", "1000"),
        ("(or #f (and 1 2) 3)", "2"),
        ("(if (or (= 1 2) (< 2 1) (not (pair? '(1)))) 'a 'b)", "b"),
        ("(let* ((x 1) (y (if (and (> x 0) (or (= x 2) (= x 1))) 'in 'out))) y)", "in"),
        ("(case 3 ((1 2) 'low) ((3 4) 'mid) (else 'high))", "mid"),
    ]);
}

#[test]
fn continuations() {
    check(&[
        ("(+ 1 (call/cc (lambda (k) (+ 10 (k 5)))))", "6"),
        (
            "(define saved #f) (define count 0)
             (define (go) (let ((r (+ 100 (call/cc (lambda (k) (set! saved k) 1)))))
               (set! count (+ count 1))
               (if (< count 3) (saved count) (list r count))))
             (go)",
            "(102 3)",
        ),
        (
            "(define (generate l)
               (define return #f)
               (define (next)
                 (call/cc (lambda (r)
                   (set! return r)
                   (let each ((l l))
                     (if (pair? l)
                         (begin
                           (call/cc (lambda (k) (set! next (lambda () (k #f))) (return (car l))))
                           (each (cdr l)))))
                   (return 'done))))
               (lambda () (call/cc (lambda (r) (set! return r) (next)))))
             (define g (generate '(1 2 3)))
             (let* ((a (g)) (b (g)) (c (g)) (d (g))) (list a b c d))",
            "(1 2 3 done)",
        ),
        (
            "(define trail '())
             (define (note x) (set! trail (cons x trail)))
             (define k #f)
             (dynamic-wind (lambda () (note 'in))
                           (lambda () (call/cc (lambda (c) (set! k c))) (note 'body))
                           (lambda () (note 'out)))
             (if (< (length trail) 8) (k 1))
             trail",
            "(out body in out body in)",
        ),
        ("(call-with-values (lambda () (values 1 2 3)) list)", "(1 2 3)"),
        ("(let-values (((a b) (values 1 2)) ((c) (values 3))) (list a b c))", "(1 2 3)"),
        ("(call-with-values (lambda () (call/cc (lambda (k) (k 1 2)))) list)", "(1 2)"),
        (
            "(define (count n) (let loop ((i 0)) (if (< i n) (begin (call/cc (lambda (k) (k i))) (loop (+ i 1))) i)))
             (count 10000)",
            "10000",
        ),
        (
            "(define (deep n) (if (= n 0) (call/cc (lambda (k) k)) (let ((r (deep (- n 1)))) r)))
             (let ((k (deep 1000))) (if (procedure? k) (k 7) k))",
            "7",
        ),
    ]);
}

#[test]
fn deep_recursion_and_its_limit() {
    check(&[
        ("(define (sum n) (if (= n 0) 0 (+ n (sum (- n 1))))) (sum 1000000)", "500000500000"),
        (
            "(define (endless n) (+ 1 (endless (+ n 1)))) (endless 0)",
            "error: recursion too deep ()",
        ),
        (
            "(guard (e (#t (list 'caught (error-object-message e)))) (endless 0))",
            "(caught \"recursion too deep\")",
        ),
        (
            "(define (caught) (guard (e (#t (error-object-message e))) (endless 0)))
             (list (caught) (caught) (caught))",
            "(\"recursion too deep\" \"recursion too deep\" \"recursion too deep\")",
        ),
        (
            "(with-exception-handler (lambda (e) (endless 0)) (lambda () (endless 0)))",
            "error: recursion too deep ()",
        ),
        (
            "(define (again e) (+ 1 (with-exception-handler again (lambda () (raise e)))))
             (with-exception-handler again (lambda () (endless 0)))",
            "error: recursion too deep ()",
        ),
        ("(sum 1000)", "500500"),
    ]);
}

#[test]
fn exceptions() {
    check(&[
        ("(guard (e (#t (list 'got e))) (raise 'boom))", "(got boom)"),
        ("(guard (e ((string? e) 'string)) (raise 'boom))", "raised boom"),
        (
            "(guard (e ((symbol? e) 'outer)) (guard (e ((string? e) 'inner)) (raise 'boom)))",
            "outer",
        ),
        (
            "(guard (e (#t (list (error-object-message e) (error-object-irritants e))))
               (error \"bad\" 1 2))",
            "(\"bad\" (1 2))",
        ),
        ("(with-exception-handler (lambda (e) 10) (lambda () (+ 1 (raise-continuable 'c))))", "11"),
        (
            "(with-exception-handler (lambda (e) 10) (lambda () (+ 1 (raise 'c))))",
            "error: the handler returned from an exception that cannot be continued (c)",
        ),
        (
            "(define trail '())
             (guard (e (#t (cons e trail)))
               (dynamic-wind (lambda () (set! trail (cons 'in trail)))
                             (lambda () (raise 'x))
                             (lambda () (set! trail (cons 'out trail)))))",
            "(x out in)",
        ),
        (
            "(guard (e (#t (error-object-message e))) (car 1))",
            "\"car: first argument must be a pair\"",
        ),
        (
            "(guard (e (#t (error-object-message e))) (vector-ref (vector 1 2) 5))",
            "\"vector-ref: second argument is out of range (0 <= index < 2)\"",
        ),
        (
            "(define p (make-parameter 10 (lambda (x) (* x 2))))
          (list (p) (parameterize ((p 3)) (p)) (p))",
            "(20 6 20)",
        ),
        ("(define s (delay (begin 5))) (list (force s) (force s))", "(5 5)"),
        (
            "(define (stream n) (if (= n 0) (delay 'end) (delay-force (stream (- n 1)))))
             (force (stream 100000))",
            "end",
        ),
        (
            "(define-record-type point (make-point x y) point? (x px set-px!) (y py))
             (let ((p (make-point 1 2))) (set-px! p 5) (list (point? p) (point? 5) (px p) (py p)))",
            "(#t #f 5 2)",
        ),
        ("(px 5)", "error: point-x: the argument must be a point (5)"),
    ]);
}

#[test]
fn large_procedures() {
    let driver = Driver::new(Limits::default());
    let sum = format!("{}1{}", "(+ 1 ".repeat(900), ")".repeat(900));
    assert_eq!(driver.eval(&sum, "test"), "901");
    let body = "(set! n (+ n x))".repeat(20_000);
    let far =
        format!("(define n 0) (define (f x) (if (< x 0) (begin {body}) n)) (list (f 1) (f -1) n)");
    assert_eq!(driver.eval(&far, "test"), "(0 #<unspecified> -20000)");
    let wide = format!("(length (list {}))", "n ".repeat(2_000));
    assert_eq!(driver.eval(&wide, "test"), "2000");
    let wider = format!("(list {})", "n ".repeat(40_000));
    assert!(driver.eval(&wider, "test").contains("too many"));
}

#[test]
fn calls_accept_as_many_arguments_as_a_frame_can_hold() {
    let driver = Driver::new(Limits::default());
    for count in [1, 47, 48, 57, 200, 201, 254, 255, 256, 257, 512, 5_000] {
        let each = |text: &str| (0..count).map(|i| text.replace('#', &i.to_string())).collect();
        let (names, numbers): (String, String) = (each("p# "), each("# "));
        let last = count - 1;
        let program = format!(
            "(define (fixed {names}) (list p0 p{last}))
             (define (rest . all) (length all))
             (define both (case-lambda ((a) 'one) (({names} more) 'more) ((a . all) (length all))))
             (define (tail f) (f {numbers}))
             (define (loops n {names}) (if (= n 0) p{last} (loops (- n 1) {names})))
             (list (fixed {numbers}) (rest {numbers}) (both 0 {numbers}) (tail fixed) (tail rest)
                   ((lambda (f) (f {numbers})) rest) (apply rest (list {numbers})) (loops 3 {numbers}))"
        );
        let expected =
            format!("((0 {last}) {count} more (0 {last}) {count} {count} {count} {last})",);
        assert_eq!(driver.eval(&program, "test"), expected, "{count} arguments");
    }
    let applied = "(apply (lambda all (length all)) (make-list 1000000 1))";
    assert_eq!(driver.eval(applied, "test"), "1000000");
    let refused = driver.eval("(apply + (make-list 2000000 1))", "test");
    assert!(refused.contains("more than 1048576 arguments"), "{refused}");
}

#[test]
fn records_have_many_fields() {
    let driver = Driver::new(Limits::default());
    for count in [30, 31, 60, 200] {
        let each = |text: &str| (0..count).map(|i| text.replace('#', &i.to_string())).collect();
        let (names, numbers): (String, String) = (each("f# "), each("# "));
        let (fields, turned): (String, String) = (each("(f# get#) "), each("(f# turned#) "));
        let reversed: String = (0..count).rev().map(|i| format!("f{i} ")).collect();
        let last = count - 1;
        let program = format!(
            "(define-record-type wide (make {names}) wide? {fields})
             (define-record-type turned (turn {reversed}) turned? {turned})
             (list (get0 (make {numbers})) (turned0 (turn {numbers})))"
        );
        assert_eq!(driver.eval(&program, "test"), format!("(0 {last})"), "{count} fields");
    }
    let fields: String = (0..201).map(|i| format!("(f{i} get{i}) ")).collect();
    let refused = driver.eval(&format!("(define-record-type w (m) w? {fields})"), "test");
    assert!(refused.contains("at most 200 fields"), "{refused}");
}

#[test]
fn everything_under_torture() {
    let driver = Driver::new(Limits { torture: Some(Torture::ALWAYS), ..Limits::default() });
    let program = "
        (define (make n) (let loop ((i 0) (l '())) (if (= i n) l (loop (+ i 1) (cons (list i (lambda () i)) l)))))
        (define (total l) (if (null? l) 0 (+ ((cadr (car l))) (total (cdr l)))))
        (define k #f)
        (define r (total (make 50)))
        (define s (+ 1.5 (call/cc (lambda (c) (set! k c) 1))))
        (define t (apply + (make-list 20 1/3)))
        (guard (e (#t (list r s t (error-object-message e)))) (total (cons 1 2)))";
    let expected = "(1225 2.5 20/3 \"cadr: first argument must be a list structure deep enough\")";
    assert_eq!(driver.eval(program, "torture"), expected);
}
