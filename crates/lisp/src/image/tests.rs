//! Worlds that are saved and loaded; and files that are not images, are incomplete, or belong to
//! another user.

use super::{ImageError, reader, seal, writer};
use crate::system::Session;
use crate::system::tests::{boot, on, within_watchdog};
use proptest::prelude::*;
use std::path::PathBuf;

fn file(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("kyocho-image-{}-{name}", std::process::id()))
}

fn shown(session: &mut Session, text: &str) -> String {
    match session.eval(text, "test") {
        Ok(evaluation) => evaluation.values.last().cloned().unwrap_or_default(),
        Err(report) => format!("error {}", report.message()),
    }
}

/// Evaluates `before`, saves and loads the world, and checks the results of `after`.
fn check(name: &'static str, before: &'static str, after: &'static [(&str, &str)]) {
    within_watchdog(move || {
        let path = file(name);
        let mut session = boot(on(1)).session();
        session.eval(before, "test").unwrap();
        let saved = shown(&mut session, &format!("(save-image {:?})", path.display().to_string()));
        assert_eq!(saved, "", "{name}");
        let mut system = boot(on(1));
        system.load_image(&path).unwrap();
        let mut session = system.session();
        for (text, expected) in after {
            assert_eq!(shown(&mut session, text), *expected, "{name}: {text}");
        }
        // A loaded world can be saved again to the file that it came from.
        assert_eq!(shown(&mut session, "(save-image)"), "", "{name}: again");
        let mut system = boot(on(1));
        system.load_image(&path).unwrap();
        let mut session = system.session();
        let (text, expected) = *after.last().unwrap();
        assert_eq!(shown(&mut session, text), expected, "{name}: {text}, after two images");
        std::fs::remove_file(path).unwrap();
    });
}

#[test]
fn data_are_restored_unchanged() {
    check(
        "data",
        "(define all (list 1 -7 1152921504606846975 -1152921504606846976 (expt 7 100) (- (expt 7 99)) 2/3 -0.5 1/2-i 1.5+2.0i
                           #\\λ 'sym \"text λ\" #u8(1 2 255) (vector 1 'a \"b\") #t #f '() (if #f #f)))
         (define cycle (list 1 2 3))
         (set-cdr! (cddr cycle) cycle)
         (define long (iota 100000))
         (define shared (let ((x (list 'x))) (list x x)))
         (define odd (string->uninterned-symbol \"car\"))
         (define constants '(#(1) \"a\" #u8(1)))
         (define-syntax complex (syntax-rules () ((_) '(-i 1/2+3i 1.5-2.0i))))",
        &[
            (
                "all",
                "(1 -7 1152921504606846975 -1152921504606846976 3234476509624757991344647769100216810857203198904625400933895331391691459636928060001 \
                 -462068072803536855906378252728602401551029028414946485847699333055955922805275437143 2/3 -0.5 1/2-i 1.5+2.0i #\\λ sym \"text λ\" #u8(1 2 255) \
                 #(1 a \"b\") #t #f () #<unspecified>)",
            ),
            ("(list-ref cycle 3000)", "1"),
            ("(complex)", "(-i 1/2+3i 1.5-2.0i)"),
            ("(apply + long)", "4999950000"),
            ("(eq? (car shared) (cadr shared))", "#t"),
            ("(list (eq? odd 'car) (symbol->string odd))", "(#f \"car\")"),
            (
                "(vector-set! (car constants) 0 2)",
                "error vector-set!: first argument must be a mutable vector: #(1)",
            ),
            (
                "(string-set! (cadr constants) 0 #\\x)",
                "error string-set!: first argument must be a mutable string: \"a\"",
            ),
            (
                "(bytevector-u8-set! (caddr constants) 0 2)",
                "error bytevector-u8-set!: first argument must be a mutable bytevector: #u8(1)",
            ),
            ("(vector-set! (list-ref all 14) 0 2)", ""),
            ("(set-car! constants 0)", "error set-car!: first argument must be a mutable pair: (#(1) \"a\" #u8(1))"),
            ("(set-cdr! (cdr constants) 0)", "error set-cdr!: first argument must be a mutable pair: (\"a\" #u8(1))"),
            ("(begin (set-car! shared 5) (car shared))", "5"),
        ],
    );
}

#[test]
fn procedures_are_restored_with_their_variables() {
    check(
        "procedures",
        "(define (make-counter n) (lambda () (set! n (+ n 1)) n))
         (define counter (make-counter 10))
         (counter)
         (define (fib n) (if (< n 2) n (+ (fib (- n 1)) (fib (- n 2)))))
         (define (even-odd n) (letrec ((e (lambda (n) (or (= n 0) (o (- n 1))))) (o (lambda (n) (and (> n 0) (e (- n 1)))))) (e n)))
         (define add3 (let ((three 3)) (case-lambda ((a) (+ a three)) ((a . rest) (apply + a three rest)))))
         (define partial (cut + 5 <>))
         (define p (make-parameter 10 (lambda (x) (* x 2))))
         (define lazy (delay (begin (set! counted (+ counted 1)) counted)))
         (define counted 0)
         (define composed (vector-map (lambda (k) (lambda (x) (list k x (sort (list 3 1 2) <)))) #(1 2)))
         (define (later) (undefined-as-yet 1))",
        &[
            ("(list (counter) (counter))", "(12 13)"),
            ("(fib 15)", "610"),
            ("(list (even-odd 10) (even-odd 11))", "(#t #f)"),
            ("(list (add3 1) (add3 1 2 3))", "(4 9)"),
            ("(partial 6)", "11"),
            ("(list (p) (parameterize ((p 3)) (p)))", "(20 6)"),
            ("(list (force lazy) (force lazy) counted)", "(1 1 1)"),
            ("((vector-ref composed 1) 'x)", "(2 x (1 2 3))"),
            ("(later)", "error unbound variable: undefined-as-yet"),
            ("(define (undefined-as-yet x) (list 'now x)) (later)", "(now 1)"),
            ("(fib 'a)", "error <: first argument must be a number: a"),
        ],
    );
}

#[test]
fn locations_that_only_code_refers_to_are_restored() {
    check(
        "locations",
        "(define next
           (eval '(begin (define n (list 0))
                         (define (up) (list (+ 1 (car n))))
                         (lambda () (set! n (up)) n))
                 (environment '(scheme base))))
         (gc) (gc) (gc)",
        &[
            ("(next)", "(1)"),
            ("(gc) (gc) (iota 100000) (next)", "(2)"),
            ("(begin (next) (length (next)))", "1"),
        ],
    );
}

#[test]
fn records_tables_macros_and_libraries_are_restored() {
    check(
        "names",
        "(define-record-type point (make-point x y) point? (x point-x set-point-x!) (y point-y))
         (define here (make-point 1 2))
         (define table (make-hash-table equal?))
         (hash-table-set! table (list 'a here) 'found)
         (hash-table-set! table \"b\" 2)
         (define by-name (make-hash-table eq?))
         (hash-table-set! by-name 'symbol 'value)
         (define folded (make-hash-table string-ci=?))
         (hash-table-set! folded \"Key\" 3)
         (define own (make-hash-table (lambda (a b) (eq? a b)) eqv-hash))
         (hash-table-set! own here 'object)
         (define by-key (make-hash-table eqv? 'weak-keys))
         (hash-table-set! by-key here 'kept)
         (hash-table-set! by-key (list 1) 'lost)
         (define by-both (make-hash-table eqv? 'weak-keys 'weak-values))
         (hash-table-set! by-both here here)
         (hash-table-set! by-both here (list 1))
         (hash-table-set! by-both 'here here)
         (define-syntax swap! (syntax-rules () ((_ a b) (let ((tmp a)) (set! a b) (set! b tmp)))))
         (define-syntax define-getter
           (syntax-rules () ((_ name value) (begin (define hidden value) (define (name) hidden)))))
         (define-getter seven 7)
         (define-getter eight 8)
         (define-syntax define-swapper
           (syntax-rules () ((_ name) (define-syntax name (syntax-rules () ((_ x y) (swap! x y)))))))
         (define-swapper exchange!)
         (define-library (my counter) (export next! (rename total sum) twice) (import (scheme base))
           (begin (define total 0) (define (next!) (set! total (+ total 1)) total)
                  (define-syntax twice (syntax-rules () ((_ x) (begin (next!) x))))))
         (define-library (my unused) (export z) (import (scheme base)) (begin (define z 26)))
         (import (my counter))
         (import (srfi 133))
         (next!)
         (define e (interaction-environment))
         (define problem (guard (x (#t x)) (error \"kept\" 1 2)))",
        &[
            ("(list (point-x here) (point? here) (point? 1))", "(1 #t #f)"),
            ("(set-point-x! here 9) (point-x here)", "9"),
            ("(list (hash-table-ref/default table (list 'a here) #f) (hash-table-ref table \"b\"))", "(found 2)"),
            ("(hash-table-ref by-name 'symbol)", "value"),
            ("(hash-table-ref folded \"kEY\")", "3"),
            ("(list (hash-table-ref own here) (hash-table-size own))", "(object 1)"),
            ("(begin (gc) (list (hash-table-ref by-key here) (hash-table-size by-key)))", "(kept 1)"),
            ("(begin (gc) (list (eq? here (hash-table-ref by-both 'here)) (hash-table-size by-both)))", "(#t 1)"),
            ("(define a 1) (define b 2) (swap! a b) (list a b)", "(2 1)"),
            ("(exchange! a b) (list a b)", "(1 2)"),
            ("(define-getter nine 9) (list (seven) (eight) (nine))", "(7 8 9)"),
            ("(list (next!) (twice 'x) (next!))", "(2 x 4)"),
            ("(define-library (my user) (export y) (import (scheme base) (my counter)) (begin (define y (next!)))) (import (my user)) y", "5"),
            ("(import (my unused)) z", "26"),
            ("(vector-count even? #(1 2 4))", "2"),
            ("(eval '(point-x here) e)", "9"),
            ("(list (error-object-message problem) (error-object-irritants problem))", "(\"kept\" (1 2))"),
            ("(point-x 1)", "error point-x: the argument must be a point: 1"),
        ],
    );
}

#[test]
fn idle_locks_and_channels_are_restored() {
    check(
        "idle",
        "(define lock (make-mutex 'its-name))
         (mutex-specific-set! lock (list 'for lock))
         (mutex-lock! lock)
         (mutex-unlock! lock)
         (define lost (make-mutex))
         (thread-join! (spawn (lambda () (mutex-lock! lost))))
         (define changed (make-condition-variable \"changed\"))
         (condition-variable-specific-set! changed lock)
         (define mail (make-channel 3))
         (define self (list 'sent mail))
         (channel-send! mail self)
         (channel-send! mail 2)
         (define shut (make-channel 2))
         (channel-send! shut 'last)
         (channel-close! shut)
         (define meeting (make-channel))",
        &[
            ("(list (mutex-name lock) (mutex-state lock))", "(its-name not-abandoned)"),
            ("(list (car (mutex-specific lock)) (eq? lock (cadr (mutex-specific lock))))", "(for #t)"),
            ("(mutex-lock! lock) (let ((mine? (eq? (current-thread) (mutex-state lock)))) (mutex-unlock! lock) mine?)", "#t"),
            ("(mutex-state lost)", "abandoned"),
            (
                "(guard (e ((abandoned-mutex-exception? e) 'abandoned)) (mutex-lock! lost))",
                "abandoned",
            ),
            (
                "(list (condition-variable-name changed) (eq? lock (condition-variable-specific changed)))",
                "(\"changed\" #t)",
            ),
            ("(mutex-lock! lock) (mutex-unlock! lock changed 0.01)", "#f"),
            // There is room for exactly one more message, so the next sender waits.
            (
                "(channel-send! mail 3)
                 (define late (spawn (lambda () (channel-send! mail 4) 'sent)))
                 (let* ((a (channel-receive mail)) (b (channel-receive mail)) (c (channel-receive mail)) (d (channel-receive mail)))
                   (list (eq? a self) (eq? mail (cadr a)) b c d (thread-join! late)))",
                "(#t #t 2 3 4 sent)",
            ),
            ("(set! late #f) (list (channel-receive shut) (channel-receive shut 'closed))", "(last closed)"),
            (
                "(let ((sender (spawn (lambda () (channel-send! meeting 'hello) 'met)))) (let ((m (channel-receive meeting))) (list m (thread-join! sender))))",
                "(hello met)",
            ),
        ],
    );
}

#[test]
fn definitions_that_cannot_be_saved_are_named() {
    within_watchdog(|| {
        let path = file("refused");
        let save = format!("(save-image {:?})", path.display().to_string());
        let mut session = boot(on(1)).session();
        let held = [
            ("(define held (list 1 (spawn (lambda () 1))))", "a thread"),
            ("(define held (vector (open-input-string \"x\")))", "a port"),
            ("(define held (call/cc (lambda (k) (lambda () k))))", "a continuation"),
            ("(define held (make-mutex)) (spawn (lambda () (mutex-lock! held) (thread-sleep! 1000)))", "a mutex that is locked"),
            ("(define held (make-mutex)) (mutex-lock! held #f #f)", "a mutex that is locked"),
            (
                "(define held (make-condition-variable))
                 (define (sleep-on held) (let ((m (make-mutex))) (mutex-lock! m) (mutex-unlock! m held)))
                 (spawn (lambda () (sleep-on held)))",
                "a condition variable that a thread waits for",
            ),
            (
                "(define held (make-channel)) (spawn (lambda () (channel-receive held)))",
                "a channel that a thread waits for",
            ),
            (
                "(define held (make-channel)) (spawn (lambda () (channel-send! held 1)))",
                "a channel that a thread waits for",
            ),
            (
                "(define held (make-channel)) (spawn (lambda () (select ((channel-receive held) 1) ((channel-receive (make-channel)) 2))))",
                "a channel that a thread waits for",
            ),
            (
                "(define held (make-channel)) (spawn (lambda () (select ((channel-send! held 1) 1) ((channel-receive (make-channel)) 2))))",
                "a channel that a thread waits for",
            ),
            (
                "(define held (make-channel 1)) (channel-send! held 1) (spawn (lambda () (select ((channel-send! held 2) 1))))",
                "a channel that a thread waits for",
            ),
            ("(define held (make-channel 1)) (channel-send! held (make-guardian))", "a guardian"),
            ("(define held (make-ephemeron (list 1) 2))", "an ephemeron"),
            ("(define held (make-guardian))", "a guardian"),
        ];
        for (text, what) in held {
            session.eval(text, "test").unwrap();
            let mut refusal = shown(&mut session, &save);
            while refusal.is_empty() {
                // The thread has not reached its wait yet.
                std::fs::remove_file(&path).unwrap();
                refusal = shown(&mut session, &save);
            }
            assert!(
                refusal.contains("`held` holds") && refusal.contains(what),
                "{text}: {refusal}"
            );
        }
        assert!(!path.exists());
        // The session's own ports become those of the loading session.
        session.eval("(define held (current-output-port))", "test").unwrap();
        assert_eq!(shown(&mut session, &save), "");
        let mut system = boot(on(1));
        system.load_image(&path).unwrap();
        assert_eq!(shown(&mut system.session(), "(eq? held (current-output-port))"), "#f");
        assert_eq!(shown(&mut system.session(), "(output-port? held)"), "#t");
        std::fs::remove_file(&path).unwrap();
        assert!(shown(&mut session, "(save-image \"/nowhere/at/all\")").contains("No such file"));
        assert!(shown(&mut session, "(save-image)").contains("which file"));
    });
}

#[test]
fn a_file_that_is_not_an_image_changes_nothing() {
    within_watchdog(|| {
        let path = file("none");
        std::fs::write(&path, "(define x 1)").unwrap();
        let mut system = boot(on(1));
        let report = system.load_image(&path).unwrap_err();
        assert!(report.message().contains("this is not an image"), "{report}");
        let missing = system.load_image(&file("missing")).unwrap_err();
        assert!(missing.message().contains("No such file"), "{missing}");
        assert_eq!(shown(&mut system.session(), "(+ 1 2)"), "3");
        std::fs::remove_file(path).unwrap();
    });
}

const KEY: &[u8] = b"the key of this test";

#[test]
fn a_seal_opens_with_its_own_key_only() {
    let image = seal::sealed_with(KEY, b"contents");
    assert_eq!(seal::opened_with(KEY, image.clone()).unwrap(), b"contents");
    let other = seal::opened_with(b"another", image.clone()).unwrap_err();
    assert!(matches!(other, ImageError::WrongSeal), "{other}");
    let longer = [image.clone(), vec![0]].concat();
    let length = seal::opened_with(KEY, longer).unwrap_err();
    assert!(matches!(length, ImageError::WrongLength { .. }), "{length}");
    let mut newer = image;
    newer[8] += 1;
    let version = seal::opened_with(KEY, newer).unwrap_err();
    assert!(matches!(version, ImageError::OtherBuild), "{version}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn changed_and_truncated_files_are_detected(
        contents in proptest::collection::vec(any::<u8>(), 0..100),
        at in any::<proptest::sample::Index>(),
        change in 1..=u8::MAX,
    ) {
        let image = seal::sealed_with(KEY, &contents);
        let mut changed = image.clone();
        let at = at.index(image.len());
        changed[at] ^= change;
        prop_assert!(seal::opened_with(KEY, changed).is_err());
        prop_assert!(seal::opened_with(KEY, image[..at].to_vec()).is_err());
    }
}

/// A world with every kind of object.
const EVERYTHING: &str = "
    (define-record-type point (make-point x y) point? (x point-x) (y point-y))
    (define all (list 1 (expt 7 100) 2/3 -0.5 'sym \"text\" #u8(1 2) (vector 1 'a) (make-point 1 2)))
    (define table (make-hash-table equal?))
    (hash-table-set! table all car)
    (define (f n) (letrec ((g (lambda (x) (if (null? x) n (g (cdr x)))))) (g all)))
    (define-syntax swap! (syntax-rules () ((_ a b) (let ((tmp a)) (set! a b) (set! b tmp)))))
    (define-syntax make (syntax-rules () ((_ name) (begin (define hidden 2.5) (define (name) hidden)))))
    (make get)
    (define-library (my library) (export z) (import (scheme base)) (begin (define z '#(1 \"s\" #\\c))))
    (import (my library))
    (define e (interaction-environment))";

#[test]
fn invalid_contents_under_a_seal_are_an_error() {
    within_watchdog(|| {
        let system = boot(on(1));
        let mut session = system.session();
        session.eval(EVERYTHING, "test").unwrap();
        let kernel = &system.kernel;
        let outsider = |body: &mut dyn FnMut(&mut kyocho_heap::heap::Mutator)| {
            kernel.threads.as_outsider(|| body(&mut crate::kernel::lock(&kernel.mutator)));
        };
        let mut contents = Vec::new();
        outsider(&mut |m| contents = writer::contents(kernel, &kernel.base, m).unwrap());
        let account =
            kyocho_heap::account::Account::new("somebody", kyocho_heap::account::Bounds::NONE);
        let restored = |contents: &[u8]| {
            let ports = kyocho_library::port::SessionPorts {
                input: None,
                output: Box::new(std::io::sink()),
                error: Box::new(std::io::sink()),
            }
            .into_ports();
            let other = kernel.open(&account, ports).unwrap();
            let mut result = Ok(());
            outsider(&mut |m| result = reader::restore(kernel, &other, m, contents).map(drop));
            other.end(kernel);
            result
        };
        restored(&contents).unwrap();
        let index = any::<proptest::sample::Index>;
        let changes = proptest::collection::vec((index(), any::<u8>()), 1..4);
        let config =
            ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() };
        let mut runner = proptest::test_runner::TestRunner::new(config);
        let mut refused = 0;
        let result = runner.run(&(changes, index(), any::<bool>()), |(changes, end, is_cut)| {
            let mut contents = contents.clone();
            for (at, byte) in changes {
                let at = at.index(contents.len());
                contents[at] = byte;
            }
            if is_cut {
                contents.truncate(end.index(contents.len()));
            }
            // A changed letter inside a text is valid too; a truncation is always detected.
            let is_refused = restored(&contents).is_err();
            prop_assert!(is_refused || !is_cut);
            Ok(())
        });
        result.unwrap();
        refused += usize::from(restored(&contents[1..]).is_err());
        assert_eq!(refused, 1);
        assert_eq!(shown(&mut session, "(gc) (list (f 3) (get) z)"), "(3 2.5 #(1 \"s\" #\\c))");
    });
}
