//! The special forms, each on its own.

use super::expand;

#[test]
fn constants_stand_for_themselves() {
    assert_eq!(
        expand("42 #t \"s\" #\\a #u8(1) #(a b)"),
        "'42\n'#t\n'\"s\"\n'#\\a\n'#u8(1)\n'#(a b)"
    );
    assert_eq!(expand("'() '(a . b)"), "'()\n'(a . b)");
}

#[test]
fn a_lambda_binds_its_parameters() {
    assert_eq!(expand("(lambda (x . r) x)"), "(lambda (x.0 . r.1) x.0)");
    assert_eq!(expand("(case-lambda ((x) x) (r r))"), "(case-lambda ((x.0) x.0) ((. r.1) r.1))");
    assert_eq!(expand("((lambda (x) x) 1)"), "(let ((x.0 '1)) x.0)");
    assert_eq!(expand("((lambda r r) 1)"), "((lambda (. r.0) r.0) '1)");
}

#[test]
fn loops_become_one_recursive_lambda() {
    assert_eq!(
        expand("(let loop ((i 0)) (loop i))"),
        "(letrec ((loop.0 (lambda (i.1) (loop.0 i.1)))) (loop.0 '0))"
    );
    assert_eq!(
        expand("(do ((i 0 (+ i 1)) (j 5)) ((p i) 'done) (display i))"),
        "(letrec ((do-loop.0 (lambda (i.1 j.2) (if (p i.1) 'done (begin (display i.1) \
         (do-loop.0 (+ i.1 '1) j.2)))))) (do-loop.0 '0 '5))"
    );
}

#[test]
fn tests_are_simplified_where_only_truth_counts() {
    assert_eq!(expand("(or a b)"), "(let ((t.0 a)) (if t.0 t.0 b))");
    assert_eq!(expand("(if (or a b) 1 2)"), "(if (if a '#t b) '1 '2)");
    assert_eq!(expand("(if (not a) 1 2)"), "(if a '2 '1)");
    assert_eq!(expand("(let ((t a)) (if t t (f t)))"), "(let ((t.0 a)) (if t.0 t.0 (f t.0)))");
    assert_eq!(
        expand("(if (let ((t a)) (if t t (f t))) 1 2)"),
        "(if (let ((t.0 a)) (if t.0 t.0 (f t.0))) '1 '2)"
    );
    assert_eq!(expand("(and a b c)"), "(if a (if b c '#f) '#f)");
    assert_eq!(expand("(and) (or)"), "'#t\n'#f");
}

#[test]
fn cond_and_case_become_tests() {
    assert_eq!(
        expand("(cond (a 1) (b => f) (c) (else 2))"),
        "(if a '1 (let ((t.0 b)) (if t.0 (f t.0) (let ((t.1 c)) (if t.1 t.1 '2)))))"
    );
    assert_eq!(
        expand("(case k ((a 2.5) 1) (() 2) (else => f))"),
        "(let ((key.0 k)) (if (if (eq? key.0 'a) '#t (eqv? key.0 '2.5)) '1 (f key.0)))"
    );
    assert_eq!(
        expand("(case k ((1 2 3 4 5 6 7 8 9) 1))"),
        "(let ((key.0 k)) (if (%case-memv key.0 '(1 2 3 4 5 6 7 8 9)) '1 #!unspecified))"
    );
    assert_eq!(
        expand("(when a 1 2) (unless a 1)"),
        "(if a (begin '1 '2) #!unspecified)\n(if a #!unspecified '1)"
    );
}

#[test]
fn quasiquote_keeps_constants_and_builds_the_rest() {
    assert_eq!(expand("`(a b)"), "'(a b)");
    assert_eq!(expand("`(a ,b c d)"), "(%cons 'a (%cons b '(c d)))");
    assert_eq!(expand("`(,a ,@b)"), "(%cons a b)");
    assert_eq!(expand("`(,@a ,b)"), "(%append2 a (%cons b '()))");
    assert_eq!(expand("`(a b c ,d)"), "(list 'a 'b 'c d)");
    assert_eq!(expand("`(a . ,b)"), "(%cons 'a b)");
    assert_eq!(expand("`#(a ,b)"), "(%list->vector (%cons 'a (%cons b '())))");
    assert_eq!(
        expand("`(a `(b ,(c ,d)))"),
        "(%cons 'a (%cons (list 'quasiquote (%cons 'b (%cons (list 'unquote (%cons 'c (%cons d '()))) '()))) '()))"
    );
    assert_eq!(expand("`,a"), "a");
    assert_eq!(expand("`(a `(b ,c))"), "'(a `(b ,c))");
}

#[test]
fn definitions_in_a_body_are_nested_by_use() {
    assert_eq!(
        expand("(let () (define a 1) (define b a) b)"),
        "(let ((a.0 '1)) (let ((b.1 a.0)) b.1))"
    );
    assert_eq!(
        expand("(let () (define (f) (g)) (define x 1) (define (g) (f)) (g))"),
        "(letrec ((f.0 (lambda () (g.1))) (x.2 '1) (g.1 (lambda () (f.0)))) (g.1))"
    );
    assert_eq!(
        expand("(let () (define a 1) (define (f) (f)) (display a) (define b 2) (f))"),
        "(let ((a.0 '1)) (letrec ((f.1 (lambda () (f.1)))) (let ((effect.2 (display a.0))) (let ((b.3 '2)) (f.1)))))"
    );
    assert_eq!(
        expand("(let () (begin (define a 1)) (begin (define b 2) a))"),
        "(let ((a.0 '1)) (let ((b.1 '2)) a.0))"
    );
    assert_eq!(expand("(letrec ((a (lambda () a))) a)"), "(letrec ((a.0 (lambda () a.0))) a.0)");
}

#[test]
fn multiple_values_are_passed_to_consumers() {
    assert_eq!(
        expand("(let-values (((a b) (f)) ((c) a)) (list b c))"),
        "(%call-with-values (lambda () (f)) (lambda (a.0 b.1) (%call-with-values (lambda () a) (lambda (c.2) (list b.1 c.2)))))"
    );
    assert_eq!(
        expand("(let*-values (((a) (f)) ((b . r) a)) b)"),
        "(%call-with-values (lambda () (f)) (lambda (a.0) (%call-with-values (lambda () a.0) (lambda (b.1 . r.2) b.1))))"
    );
    assert_eq!(
        expand("(define-values (x . y) (f))"),
        "(%call-with-values (lambda () (f)) (lambda (value.0 . value.1) (begin (define x value.0) (define y value.1) #!unspecified)))"
    );
    assert_eq!(
        expand("(let () (define-values (x y) (f)) x)"),
        "(let ((values.0 (%call-with-values (lambda () (f)) (lambda (value.1 value.2) (%cons value.1 (%cons value.2 '())))))) \
         (let ((x.3 (car values.0))) (let ((values.4 (cdr values.0))) (let ((y.5 (car values.4))) (let ((values.6 (cdr values.4))) x.3)))))"
    );
}

#[test]
fn records_call_the_helpers() {
    assert_eq!(
        expand("(define-record-type point (make-point y) point? (x px set-px!) (y py))"),
        "(begin (define point (%make-record-type 'point '(x y) '#f)) \
         (define make-point (%record-constructor point '(1))) \
         (define point? (%record-predicate point)) (define px (%record-accessor point '0)) \
         (define set-px! (%record-modifier point '0)) (define py (%record-accessor point '1)))"
    );
}

#[test]
fn dynamic_forms_call_procedures_of_the_machine() {
    assert_eq!(expand("(delay a)"), "(%delay-force (lambda () (%make-promise '#t a)))");
    assert_eq!(expand("(delay-force a)"), "(%delay-force (lambda () a))");
    assert_eq!(
        expand("(parameterize ((p 1)) (f))"),
        "(%parameterize (list (%cons p '1)) (lambda () (f)))"
    );
    assert_eq!(
        expand("(guard (e ((f e) 1)) (g))"),
        "(%with-guard (lambda (e.0 raise-again.1) (if (f e.0) '1 (raise-again.1))) (lambda () (g)))"
    );
    assert_eq!(
        expand("(and-let* ((x (f)) ((g x))) x)"),
        "(let ((x.0 (f))) (if x.0 (let ((t.1 (g x.0))) (if t.1 x.0 '#f)) '#f))"
    );
}

#[test]
fn cond_expand_takes_the_first_clause_that_holds() {
    assert_eq!(expand("(cond-expand (nowhere 1) ((and r7rs (not nowhere)) 2) (else 3))"), "'2");
    assert_eq!(expand("(cond-expand ((library (scheme base)) 1) (else 2))"), "'1");
    assert_eq!(expand("(cond-expand ((library (no such)) 1) (else 2))"), "'2");
}

#[test]
fn curried_definitions_return_procedures() {
    assert_eq!(expand("(define ((f a) b) a)"), "(define f (lambda (a.0) (lambda (b.1) a.0)))");
}
