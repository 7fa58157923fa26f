//! Macros: the examples of R7RS §4.3, of Clinger and Rees, and of Kohlbecker, with the captures
//! that must not happen.

use super::{Prompt, expand};

const MY_OR: &str = "(define-syntax my-or (syntax-rules () ((_) #f) ((_ e) e) \
     ((_ e r ...) (let ((t e)) (if t t (my-or r ...))))))";
const SWAP: &str =
    "(define-syntax swap! (syntax-rules () ((_ a b) (let ((tmp a)) (set! a b) (set! b tmp)))))";

/// The expansion of the last form of `text`.
fn last(text: &str) -> String {
    expand(text).lines().last().unwrap_or_default().to_owned()
}

#[test]
fn an_inserted_binding_does_not_capture_the_users_variable() {
    assert_eq!(
        last(&format!("{MY_OR} (lambda (t) (my-or #f t))")),
        "(lambda (t.0) (let ((t.1 '#f)) (if t.1 t.1 t.0)))"
    );
    assert_eq!(
        last(&format!("{SWAP} (lambda (tmp other) (swap! tmp other))")),
        "(lambda (tmp.0 other.1) (let ((tmp.2 tmp.0)) (begin (set! tmp.0 other.1) (set! other.1 tmp.2))))"
    );
}

#[test]
fn the_users_binding_does_not_capture_an_inserted_name() {
    assert_eq!(
        last(&format!("{MY_OR} (lambda (if let) (my-or 1 (if let)))")),
        "(lambda (if.0 let.1) (let ((t.2 '1)) (if t.2 t.2 (if.0 let.1))))"
    );
    assert_eq!(
        last(
            "(let ((x 'outer)) (let-syntax ((m (syntax-rules () ((m) x)))) (let ((x 'inner)) (m))))"
        ),
        "(let ((x.0 'outer)) (let ((x.1 'inner)) x.0))"
    );
    assert_eq!(
        last(
            "(let ((if #t)) (let-syntax ((given-that (syntax-rules () ((_ test stmt ...) \
              (cond (test stmt ...)))))) (given-that if (set! if 'now) if)))"
        ),
        "(let ((if.0 '#t)) (if if.0 (begin (set! if.0 'now) if.0) #!unspecified))"
    );
}

#[test]
fn a_local_redefinition_of_a_keyword_is_no_keyword() {
    assert_eq!(last("(let ((=> #f)) (cond (#t => 'ok)))"), "(let ((=>.0 '#f)) (begin =>.0 'ok))");
    assert_eq!(
        last("(let ((else #f)) (cond (else 1)))"),
        "(let ((else.0 '#f)) (if else.0 '1 #!unspecified))"
    );
    assert_eq!(last("(define (f if) (if 1 2 3))"), "(define f (lambda (if.0) (if.0 '1 '2 '3)))");
    assert_eq!(
        last("(let () (define (when x) x) (when 1))"),
        "(let ((when.0 (lambda (x.1) x.1))) (when.0 '1))"
    );
    assert_eq!(last("(let ((quote -)) 'x)"), "(let ((quote.0 -)) (quote.0 x))");
}

#[test]
fn an_inserted_else_means_the_keyword_whatever_the_user_binds() {
    let text = "(define-syntax my-cond (syntax-rules () ((_ a b) (cond (a b) (else 'none)))))";
    assert_eq!(
        last(&format!("{text} (lambda (else) (my-cond else 1))")),
        "(lambda (else.0) (if else.0 '1 'none))"
    );
}

#[test]
fn literals_match_by_binding() {
    let arrow = "(define-syntax m (syntax-rules (to) ((_ a to b) 'literal) ((_ a b c) 'other)))";
    assert_eq!(last(&format!("{arrow} (m 1 to 2)")), "'literal");
    assert_eq!(last(&format!("{arrow} (m 1 from 2)")), "'other");
    assert_eq!(last(&format!("{arrow} (lambda (to) (m 1 to 2))")), "(lambda (to.0) 'other)");
    // Both refer to the same top-level variable, defined or not.
    assert_eq!(last(&format!("{arrow} (define to 3) (m 1 to 2)")), "'literal");
}

#[test]
fn literals_match_across_libraries_when_unbound_in_both() {
    let text = "(define-library (l) (import (scheme base)) (export m) (begin \
        (define-syntax m (syntax-rules (in) ((_ x in y) 'literal) ((_ x y z) 'other)))))";
    assert_eq!(last(&format!("{text} (import (l)) (m 1 in 2)")), "'literal");
    assert_eq!(last(&format!("{text} (import (l)) (define in 1) (m 1 in 2)")), "'other");
}

#[test]
fn be_like_begin_makes_a_macro_with_its_own_ellipsis() {
    let text = "(define-syntax be-like-begin (syntax-rules () ((_ name) \
        (define-syntax name (syntax-rules () ((_ expr (... ...)) (begin expr (... ...))))))))";
    assert_eq!(last(&format!("{text} (be-like-begin sequence) (sequence 1 2 3 4)")), "'4");
    let own = "(define-syntax be-like-begin (syntax-rules () ((_ name) \
        (define-syntax name (syntax-rules dots () ((_ expr dots) (begin expr dots)))))))";
    assert_eq!(
        last(&format!("{own} (be-like-begin sequence) (list (sequence 1 2))")),
        "(list (begin '1 '2))"
    );
}

#[test]
fn ellipses_nest_follow_and_escape() {
    let my_let = "(define-syntax my-let* (syntax-rules () ((_ () b ...) (let () b ...)) \
        ((_ ((x v) (y w) ...) b ...) (let ((x v)) (my-let* ((y w) ...) b ...)))))";
    assert_eq!(
        last(&format!("{my_let} (my-let* ((x 1) (y x)) y)")),
        "(let ((x.0 '1)) (let ((y.1 x.0)) y.1))"
    );
    assert_eq!(
        last(
            "(define-syntax m (syntax-rules () ((_ (a b ...) ...) '((b ... a) ...)))) (m (1 2 3) (4))"
        ),
        "'((2 3 1) (4))"
    );
    assert_eq!(
        last(
            "(define-syntax flat (syntax-rules () ((_ (a ...) ...) '(a ... ...)))) (flat (1 2) () (3))"
        ),
        "'(1 2 3)"
    );
    assert_eq!(
        last("(define-syntax each (syntax-rules () ((_ x y ...) '((x y) ...)))) (each 1 2 3)"),
        "'((1 2) (1 3))"
    );
    assert_eq!(
        last(
            "(define-syntax cross (syntax-rules () ((_ (x ...) y ...) '((x y ...) ...)))) (cross (1 2) a b)"
        ),
        "'((1 a b) (2 a b))"
    );
    assert_eq!(
        last("(define-syntax tail (syntax-rules () ((_ a ... b c) '(c b a ...)))) (tail 1 2 3 4)"),
        "'(4 3 1 2)"
    );
    assert_eq!(
        last("(define-syntax dot (syntax-rules () ((_ a ... . b) '(b a ...)))) (dot 1 2 . 3)"),
        "'(3 1 2)"
    );
    assert_eq!(
        last(
            "(define-syntax vec (syntax-rules () ((_ #(a b ...) ...) '#(a ... (b ...) ...)))) (vec #(1 2) #(3))"
        ),
        "'#(1 3 (2) ())"
    );
    assert_eq!(
        last("(define-syntax esc (syntax-rules () ((_ a) '(a (... ...) (... (x ...)))))) (esc 1)"),
        "'(1 ... (x ...))"
    );
}

#[test]
fn an_ellipsis_that_is_a_literal_or_underscore_is_no_ellipsis() {
    assert_eq!(
        last("(define-syntax m (syntax-rules (...) ((_ a ...) '(a is)))) (m 1 ...)"),
        "'(1 is)"
    );
    assert_eq!(
        last("(define-syntax m (syntax-rules (_) ((m _) 'under) ((m x) 'any))) (m _)"),
        "'under"
    );
    assert_eq!(last("(define-syntax m (syntax-rules () ((_ _ a _) 'a))) (m 1 2 3)"), "'2");
}

#[test]
fn loop_until_with_inserted_and_given_names() {
    let text = "(define-syntax loop-until (syntax-rules () ((_ var init test exp step) \
        (letrec ((loop (lambda (var) (if test exp (loop step))))) (loop init)))))";
    assert_eq!(
        last(&format!("{text} (lambda (loop) (loop-until i 0 (loop i) i (+ i 1)))")),
        "(lambda (loop.0) (letrec ((loop.1 (lambda (i.2) (if (loop.0 i.2) i.2 (loop.1 (+ i.2 '1)))))) (loop.1 '0)))"
    );
}

#[test]
fn letrec_syntax_macros_see_one_another() {
    let text = "(letrec-syntax ((my-or (syntax-rules () ((my-or) #f) ((my-or e) e) \
        ((my-or e1 e2 ...) (let ((temp e1)) (if temp temp (my-or e2 ...))))))) \
        (let ((x #f) (temp 8) (if list)) (my-or x (let temp) (if y) y)))";
    let expected =
        "(let ((x.0 '#f) (temp.1 '8) (if.2 list)) (let ((temp.3 x.0)) (if temp.3 temp.3 ";
    let text = text.replace("(let temp)", "temp");
    assert!(last(&text).starts_with(expected), "{}", last(&text));
}

#[test]
fn macros_that_define_macros_keep_the_users_names_apart() {
    // The generated macro inserts the `x` of the generating macro, not the `x` in scope at either
    // use.
    let text = "(define x 'top) (define-syntax make (syntax-rules () ((_ name) \
        (define-syntax name (syntax-rules () ((_ e) (list x e)))))))";
    assert_eq!(
        last(&format!("{text} (make get) (lambda (x) (get x))")),
        "(lambda (x.0) (list x x.0))"
    );
    assert_eq!(
        last(&format!("{text} (lambda (x) (make get) (get x))")),
        "(lambda (x.0) (list x x.0))"
    );
}

#[test]
fn a_name_that_a_macro_defines_at_top_level_is_the_macros_own() {
    let text = "(define-syntax counter (syntax-rules () ((_ next) (begin (define n 0) \
        (define (next) (set! n (+ n 1)) n)))))";
    let mut prompt = Prompt::new();
    prompt.expand(&format!("{text} (counter a) (counter b)"));
    let error = prompt.world.expand(&prompt.environment.clone(), &read("n")).map(|forms| {
        let super::TopLevel::Form(super::Core::Global(global, _)) = &forms[0] else { panic!() };
        prompt.environment.variable("n").is_some_and(|n| n == *global)
    });
    // The user's `n` is a different location, and is undefined.
    assert!(error.unwrap());
    assert!(!prompt.environment.names().contains(&"n"));
}

fn read(text: &str) -> crate::datum::Datum {
    crate::reader::read_all(text, "test").unwrap().remove(0)
}

#[test]
fn quoted_aliases_are_the_symbols_the_user_sees() {
    assert_eq!(
        last("(define-syntax m (syntax-rules () ((_ a) '(x a #(x) . y)))) (m z)"),
        "'(x z #(x) . y)"
    );
    assert_eq!(
        last("(define-syntax k (syntax-rules () ((_ e) (case e ((x) 1) (else 2))))) (k 'x)"),
        "(let ((key.0 'x)) (if (eq? key.0 'x) '1 '2))"
    );
}

#[test]
fn a_macro_may_define_in_a_body() {
    let text = "(define-syntax def (syntax-rules () ((_ n v) (begin (define hidden v) (define (n) hidden)))))";
    assert_eq!(
        last(&format!("{text} (let ((hidden 1)) (def get 2) (list hidden (get)))")),
        "(let ((hidden.0 '1)) (let ((hidden.1 '2)) (let ((get.2 (lambda () hidden.1))) (list hidden.0 (get.2)))))"
    );
}

#[test]
fn imported_macros_reach_names_that_were_not_imported() {
    let text = "(define-library (c) (import (scheme base)) (export inc!) (begin (define step 2) \
        (define-syntax inc! (syntax-rules () ((_ v) (set! v (+ v step)))))))";
    let shown = expand(&format!("{text} (import (only (c) inc!)) (lambda (step) (inc! step))"));
    assert_eq!(
        shown,
        "(define step '2)\nready (c)\n(lambda (step.0) (set! step.0 (+ step.0 step)))"
    );
}

#[test]
fn syntax_definitions_may_rename_keywords() {
    assert_eq!(last("(define-syntax my-if if) (my-if a 1 2)"), "(if a '1 '2)");
    assert_eq!(last("(import (rename (scheme base) (if wenn))) (wenn a 1 2)"), "(if a '1 '2)");
    assert_eq!(
        last("(import (prefix (only (scheme base) lambda) s:)) (s:lambda (x) x)"),
        "(lambda (x.0) x.0)"
    );
}

#[test]
fn cut_makes_one_parameter_a_slot() {
    assert_eq!(expand("(cut list <> 1 <>)"), "(lambda (x.0 x.1) (list x.0 '1 x.1))");
    assert_eq!(expand("(cut list 1 <...>)"), "(lambda (. rest.0) (apply list '1 rest.0))");
    assert_eq!(
        expand("(cute list (f) <>)"),
        "(let ((t.0 list) (t.1 (f))) (lambda (x.2) (t.0 t.1 x.2)))"
    );
}

#[test]
fn fluid_let_swaps_and_swaps_back() {
    assert_eq!(
        expand("(lambda (a b) (fluid-let ((a 1) (b a)) (f)))"),
        "(lambda (a.0 b.1) (let ((inside.2 '1) (inside.3 a.0) (outside.4 '#f) (outside.5 '#f)) (dynamic-wind \
         (lambda () (begin (set! outside.4 a.0) (set! outside.5 b.1) (set! a.0 inside.2) (set! b.1 inside.3))) \
         (lambda () (f)) \
         (lambda () (begin (set! inside.2 a.0) (set! inside.3 b.1) (set! a.0 outside.4) (set! b.1 outside.5))))))"
    );
}
