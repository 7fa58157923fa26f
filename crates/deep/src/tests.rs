use super::{Cause, Failure, Options, Outcome, run};
use kyocho_heap::heap::{CellCache, Limits, Torture};
use kyocho_syntax::symbol::Symbol;

const ACK: &str = include_str!("../../../bench/lisp/deep/ack.scm");
const QUICKSORT: &str = include_str!("../../../bench/lisp/deep/qs72.scm");

fn run_with(source: &str, options: &Options) -> (Outcome, String) {
    let mut output = Vec::new();
    let outcome = run(source, "test", options, &mut output).unwrap();
    (outcome, String::from_utf8(output).unwrap())
}

fn value(source: &str) -> Result<String, Cause> {
    let (outcome, _) = run_with(source, &Options::default());
    outcome.value.map_err(|Failure { cause, .. }| cause)
}

fn shown(source: &str) -> String {
    value(source).unwrap()
}

fn with_cache(cell_cache: CellCache) -> Options {
    Options { cell_cache, ..Options::default() }
}

fn torture() -> Limits {
    Limits { torture: Some(Torture::ALWAYS), bytes_max: 64 << 20, ..Limits::default() }
}

#[test]
fn special_forms_behave_as_in_scheme() {
    for (source, expected) in [
        ("(+ 1 (* 2 3) (- 4))", "3"),
        ("'(a \"b\" (1 . 2) #t ())", "(a \"b\" (1 . 2) #t ())"),
        ("(if #f 1)", "#<unspecified>"),
        ("(cond ((= 1 2) 'a) ((car '(b))) (else 'c))", "b"),
        ("(cond (#f 1) (else 2 3))", "3"),
        ("(let ((x 1) (y 2)) (let ((x y) (y x)) (list x y)))", "(2 1)"),
        ("(let* ((x 1) (y (+ x 1))) (list x y))", "(1 2)"),
        ("(let loop ((i 0) (l '())) (if (< i 3) (loop (+ i 1) (cons i l)) l))", "(2 1 0)"),
        ("(define (f . rest) rest) (f 1 2)", "(1 2)"),
        ("(define (f a . rest) (list a rest)) (f 1)", "(1 ())"),
        ("((lambda (x) (set! x (+ x 1)) x) 4)", "5"),
        ("(define x 1) (set! x 2) (begin (define y x) (+ x y))", "4"),
        ("(list (and) (and 1 2) (and #f 2) (or) (or #f 3) (or #f #f))", "(#t 2 #f #f 3 #f)"),
        (
            "(define (f n) (define (even? n) (if (= n 0) #t (odd? (- n 1))))
               (define (odd? n) (if (= n 0) #f (even? (- n 1)))) (even? n)) (f 10)",
            "#t",
        ),
        (
            "(letrec ((even? (lambda (n) (if (= n 0) #t (odd? (- n 1)))))
                      (odd? (lambda (n) (if (= n 0) #f (even? (- n 1)))))) (odd? 7))",
            "#t",
        ),
        ("(define (adder n) (lambda (m) (+ n m))) (let ((n 100)) ((adder 1) 2))", "3"),
        ("(append '(1 2) '() '(3) '(4 . 5))", "(1 2 3 4 . 5)"),
        ("(equal? '(1 (\"x\") b) (list 1 (list \"x\") 'b))", "#t"),
        ("(list (quotient -7 2) (remainder -7 2) (modulo -7 2) (modulo 7 -2))", "(-3 -1 1 -1)"),
    ] {
        assert_eq!(shown(source), expected, "{source}");
    }
}

#[test]
fn errors_name_their_cause() {
    let unbound = Cause::Unbound(Symbol::intern("nowhere"));
    assert_eq!(value("(+ 1 nowhere)"), Err(unbound.clone()));
    assert_eq!(value("(set! nowhere 1)"), Err(unbound));
    assert_eq!(value("(letrec ((a b) (b 1)) a)"), Err(Cause::Unbound(Symbol::intern("b"))));
    assert_eq!(value("(5 6)"), Err(Cause::NotProcedure("5".into())));
    assert_eq!(value("(car)"), Err(Cause::Arity { who: "car".into(), got: 0 }));
    assert_eq!(value("(quotient 1 0)"), Err(Cause::DivideByZero("quotient")));
    assert_eq!(value("(let ((x)) x)"), Err(Cause::Malformed("let")));
    assert_eq!(value("(error \"no\" '(\"way\"))"), Err(Cause::Raised("no (\"way\")".into())));
    let big = "(define (power n) (if (= n 0) 1 (* 2 (power (- n 1))))) (power 60)";
    assert_eq!(value(big), Err(Cause::Overflow("*")));
    let wrong = Cause::WrongType { who: "cadr", expected: "a pair", got: "(quote)".into() };
    assert_eq!(value("(cadr '(quote))"), Err(wrong));
    let (outcome, _) = run_with("1\n  (car 2)", &Options::default());
    let failure = outcome.value.unwrap_err();
    assert_eq!((failure.span.line, failure.span.column), (2, 3));
    assert!(matches!(
        run("(car", "test", &Options::default(), &mut Vec::new()),
        Err(Failure { cause: Cause::Syntax(_), .. })
    ));
}

#[test]
fn recursion_ends_at_its_bound_with_an_error() {
    let options = Options { frames_max: 1000, ..Options::default() };
    let (outcome, _) = run_with("(define (f n) (+ 1 (f n))) (f 1)", &options);
    assert_eq!(outcome.value.unwrap_err().cause, Cause::TooDeep { frames_max: 1000 });
    let tail = "(define (f n) (if (= n 0) 'done (f (- n 1)))) (f 100000)";
    assert_eq!(run_with(tail, &options).0.value.unwrap(), "done");
}

#[test]
fn garbage_is_collected_and_a_full_heap_is_an_error() {
    let heap =
        Limits { bytes_max: 1 << 20, first_collection_bytes: 256 << 10, ..Limits::default() };
    let options = Options { heap, ..Options::default() };
    let (outcome, _) = run_with("(define (f n) (if (= n 0) 'ok (f (- n 1)))) (f 100000)", &options);
    assert_eq!(outcome.value.unwrap(), "ok");
    assert!(outcome.statistics.collections > 1);
    let (outcome, _) = run_with("(define (f l) (f (cons 1 l))) (f '())", &options);
    assert_eq!(outcome.value.unwrap_err().cause, Cause::OutOfMemory);
}

#[test]
fn every_policy_computes_the_same_and_counts_its_messages() {
    for source in [ACK, QUICKSORT] {
        let (off, expected) = run_with(source, &with_cache(CellCache::Off));
        let cells = off.statistics.cells;
        assert!(off.value.is_ok() && off.statistics.messages == cells && cells > 1000);
        for cache in [1, 2, 7, 100, 4096] {
            let (fixed, text) = run_with(source, &with_cache(CellCache::Fixed(cache)));
            assert_eq!(text, expected);
            let asked = fixed.statistics;
            assert_eq!(asked.cells, asked.messages * u64::from(cache));
            assert!(asked.cells >= cells && asked.cells < cells + 2 * u64::from(cache));
        }
        let (auto, text) = run_with(source, &with_cache(CellCache::Auto));
        assert_eq!(text, expected);
        assert!(auto.statistics.messages < cells / 16 + 50);
    }
}

#[test]
fn the_papers_programs_survive_a_collection_at_every_safepoint() {
    let small = ACK.replace("(ack 3 3)", "(ack 2 3)").replace("repeat 4", "repeat 2");
    let options = Options { heap: torture(), ..with_cache(CellCache::Fixed(7)) };
    let (outcome, text) = run_with(&small, &options);
    assert!(outcome.value.is_ok() && outcome.statistics.collections > 100);
    assert_eq!(text, "9\n");
}

#[test]
fn user_and_system_time_are_real_time() {
    let (outcome, _) = run_with(ACK, &with_cache(CellCache::Off));
    let spent = outcome.statistics;
    assert_eq!(spent.user + spent.system, spent.real);
    assert!(spent.system.as_nanos() > 0 && spent.user.as_nanos() > 0);
    let json = spent.to_json();
    assert!(json.starts_with("{\"cell_cache\":\"off\",\"cells\":") && json.ends_with('}'));
}

#[test]
fn a_program_can_ask_for_its_statistics() {
    let (_, text) =
        run_with("(display 'hello) (newline) (system-call-statistics)", &Options::default());
    assert!(text.starts_with("hello\ncell cache auto: "), "{text}");
}
