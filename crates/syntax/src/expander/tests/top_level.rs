//! Forms that define several names, and forms with an error after a definition.

use super::{Core, Prompt, TopLevel, expand, show};

/// A macro that defines `first`, and after it `second`, which `first` calls.
const DEFINE_BOTH: &str = "(define-syntax define-both (syntax-rules () ((_ first) \
     (begin (define (first) (second)) (define (second) 1)))))";

fn last(text: &str) -> String {
    expand(text).lines().last().unwrap_or_default().to_owned()
}

/// Expands the correct form `right`, then each of `wrong`, then `text`.
fn after_errors(right: &str, wrong: &[&str], text: &str) -> String {
    let mut prompt = Prompt::new();
    prompt.try_expand(right).unwrap();
    for wrong in wrong {
        prompt.try_expand(wrong).unwrap_err();
    }
    show(&prompt.try_expand(text).unwrap())
}

#[test]
fn definitions_of_one_macro_use_see_each_other() {
    let text = format!("{DEFINE_BOTH} (define (second) 2) (define-both f)");
    let forms = Prompt::new().try_expand(&text).unwrap();
    let [
        TopLevel::Form(Core::DefineGlobal(own, ..)),
        TopLevel::Form(Core::DefineGlobal(_, f, _)),
        TopLevel::Form(Core::DefineGlobal(made, ..)),
    ] = forms.as_slice()
    else {
        panic!("{}", show(&forms))
    };
    let Core::Lambda(f) = &**f else { panic!("{f:?}") };
    let Core::Call(called, ..) = &f.clauses[0].body else { panic!("{f:?}") };
    let Core::Global(called, _) = &**called else { panic!("{called:?}") };
    assert_eq!(called, made);
    assert_ne!(called, own, "the program's `second` is another one");
}

#[test]
fn forms_of_one_begin_follow_one_another() {
    // A keyword becomes a variable, a variable becomes a keyword, and a keyword changes its
    // meaning.
    assert_eq!(
        expand("(begin (define (f) (when car 2)) (define (when x y) x) (when 1 2))"),
        "(define f (lambda () (if car '2 #!unspecified)))\n\
         (define when (lambda (x.0 y.1) x.0))\n(when '1 '2)"
    );
    assert_eq!(
        expand("(define (m) 1) (begin (m) (define-syntax m (syntax-rules () ((_) 2))) (m))"),
        "(define m (lambda () '1))\n(m)\n'2"
    );
    assert_eq!(
        last(
            "(define-syntax m (syntax-rules () ((_) 1))) \
             (begin (define (f) (m)) (define-syntax m (syntax-rules () ((_) 2))))"
        ),
        "(define f (lambda () '1))"
    );
    assert_eq!(
        expand(
            "(begin (define-syntax two (syntax-rules () ((_ a b) \
             (begin (define a (b)) (define (b) 2))))) \
             (two x y) (define-syntax y (syntax-rules () ((_) 3))) (y))"
        ),
        "(define x (y))\n(define y (lambda () '2))\n'3"
    );
    assert_eq!(
        last(
            "(begin (define-values (if . cond) (values 1 2)) (define-record-type and #f or) \
             (if cond (or and)))"
        ),
        "(if cond (or and))"
    );
    // A keyword may be used before its definition, as in a body.
    assert_eq!(
        expand("(begin (define (f) (m)) (define-syntax m (syntax-rules () ((_) 3))))"),
        "(define f (lambda () '3))"
    );
}

#[test]
fn a_form_with_an_error_defines_nothing() {
    let wrong = [
        "(begin (define (when x) x) (define-syntax unless when) (if))",
        "(begin (define-values (if . cond) (values 1 2)) (define-record-type and #t or) (lambda))",
        "(define (cons x) (if))",
        "(begin (define-syntax let (syntax-rules () ((_) 1))) (define (car x) x) (lambda))",
    ];
    assert_eq!(after_errors("", &wrong, "(when car 2)"), "(if car '2 #!unspecified)");
    assert_eq!(after_errors("", &wrong, "(unless car 2)"), "(if car #!unspecified '2)");
    assert_eq!(after_errors("", &wrong, "(if car (cond (else 1)) (or))"), "(if car '1 '#f)");
    assert_eq!(after_errors("", &wrong, "(let ((x 1)) x)"), "(let ((x.0 '1)) x.0)");
    // An imported name cannot be assigned; an own name could.
    let mut prompt = Prompt::new();
    for wrong in wrong {
        prompt.error(wrong);
    }
    for name in ["car", "cons"] {
        let error = prompt.error(&format!("(set! {name} 1)"));
        assert!(error.contains("is imported"), "{error}");
    }
    let own = "(define x 1) (define-syntax m (syntax-rules () ((_) x)))";
    assert_eq!(after_errors(own, &["(begin (define (m) 1) (define x (if)))"], "(m)"), "x");
}

#[test]
fn an_import_in_a_form_with_an_error_imports_nothing() {
    let mut prompt = Prompt::new();
    prompt
        .try_expand("(define-library (a) (export b) (import (scheme base)) (begin (define b 1)))")
        .unwrap();
    prompt.error("(begin (import (a)) (if))");
    assert_eq!(prompt.expand("(import (a)) b"), "(define b '1)\nready (a)\nb");
    let mut prompt = Prompt::new();
    let library = "(define-library (a) (export (rename b car)) (import (scheme base)) \
                   (begin (define b 1)))";
    prompt.try_expand(library).unwrap();
    prompt.error("(begin (import (a)) (if))");
    assert_eq!(prompt.expand("(begin car (import (a)) car)"), "car\n(define b '1)\nready (a)\nb");
}
