//! Every malformed form yields its position, the problem and what was expected. No expansion runs
//! without bound.

use super::{Prompt, error};

#[test]
fn errors_of_malformed_forms_say_what_was_expected() {
    for (text, parts) in [
        ("(if)", &["test:1:1", "malformed `if`", "(if test then [else])"][..]),
        ("(if 1 2 3 4)", &["malformed `if`"]),
        ("(lambda)", &["malformed `lambda`", "(lambda (parameter ...) body ...)"]),
        ("(lambda (x))", &["malformed `lambda`"]),
        ("(lambda (x x) x)", &["test:1:12", "`x` is bound twice"]),
        ("(lambda (1) x)", &["test:1:10", "1 cannot be bound", "an identifier"]),
        ("(let ((x)) x)", &["(x) is no binding", "(variable value)"]),
        ("(let ((x 1) (x 2)) x)", &["`x` is bound twice"]),
        ("(let loop)", &["malformed `let`"]),
        ("(quote)", &["malformed `quote`"]),
        ("()", &["() is no expression", "'()"]),
        ("(f . x)", &["a dot in (f . x)"]),
        ("(let () (define x 1))", &["no expression", "at least one expression"]),
        ("(let () (define x 1) (define x 2) x)", &["`x` is bound twice"]),
        ("(if (define x 1) 2)", &["a definition where an expression must stand"]),
        ("(define)", &["malformed `define`"]),
        ("(define x 1 2)", &["malformed `define`"]),
        ("(define 5 1)", &["5 cannot be defined"]),
        ("(set! 5 1)", &["5 is no variable"]),
        ("(set! if 1)", &["`if` is a keyword"]),
        (
            "(set! car 1)",
            &["test:1:7", "`car` is imported and cannot be assigned", "(define car ...)"],
        ),
        ("(cond (else))", &["else clause"]),
        ("(cond (else 1) (2 3))", &["else in the last clause"]),
        ("(case 1 (x 2))", &["no list of data"]),
        ("else", &["`else` is a keyword, not a value"]),
        ("(else 1)", &["misplaced keyword"]),
        ("(list if)", &["test:1:7", "`if` is a keyword"]),
        (",x", &["misplaced keyword", "a quasiquoted template"]),
        ("`,@x", &["unquote-splicing outside of a list"]),
        ("(define-record-type p (make z) p? (x px))", &["z in the constructor"]),
        ("(define-record-type p #f p? (x px y z))", &["is no field"]),
        ("(guard)", &["malformed `guard`"]),
        ("(do ((i 0 1 2)) (#t))", &["malformed `do`"]),
        ("(syntax-error \"do not\" 1 x)", &["do not 1 x"]),
        ("(define-syntax m 5)", &["5 is no transformer"]),
        ("(define-syntax m (syntax-rules))", &["malformed rules of `m`"]),
        ("(define-syntax m (syntax-rules () (x y)))", &["no rule"]),
        ("(define-syntax m (syntax-rules () ((_ a a) 1)))", &["`a` stands twice"]),
        ("(define-syntax m (syntax-rules () ((_ a ...) a)))", &["`a` needs more ellipses"]),
        ("(define-syntax m (syntax-rules () ((_ a) (a ...))))", &["nothing repeats in a"]),
        ("(define-syntax m (syntax-rules () ((_ a ... b ...) 1)))", &["misplaced ellipsis"]),
        ("(define-syntax m (syntax-rules () ((_ ... a) 1)))", &["misplaced ellipsis"]),
        (
            "(define-syntax m (syntax-rules () ((_ a) a)))\n(m 1 2)",
            &["test:2:1", "no rule of this macro matches (m 1 2)", "(_ a)"],
        ),
        (
            "(define-syntax m (syntax-rules () ((_ (a ...) (b ...)) '((a b) ...))))(m (1) (2 3))",
            &["differ in length"],
        ),
        ("(cond-expand (5 1))", &["5 is no requirement"]),
        ("(include \"/no/such/file\")", &["cannot read /no/such/file"]),
        ("(list '#0=(a) '#0#)", &["#0# refers to a label outside"]),
        ("#0=(list #0#)", &["labels inside (quote ...) only"]),
    ] {
        let error = error(text);
        for part in parts {
            assert!(error.contains(part), "{text}: {error} lacks {part}");
        }
    }
}

#[test]
fn an_error_inside_a_macro_use_names_the_macro() {
    let error = error("(define-syntax m (syntax-rules () ((_ a) (list (if a)))))\n(list (m 1))");
    assert!(error.starts_with("test:2:7: malformed `if`"), "{error}");
    assert!(error.contains("in the expansion of `m`"), "{error}");
}

#[test]
fn macros_that_do_not_end_are_stopped() {
    for text in [
        "(define-syntax m (syntax-rules () ((_) (m)))) (m)",
        "(define-syntax m (syntax-rules () ((_) (m)))) (list (m))",
        "(define-syntax m (syntax-rules () ((_ x) (m (x x))))) (m 1)",
        "(define-syntax m (syntax-rules () ((_ x ...) (m x ... x ...)))) (m 1)",
        "(define-syntax m (syntax-rules () ((_ x) (begin (m x) (m x))))) (m 1)",
    ] {
        let error = error(text);
        assert!(error.contains("steps") || error.contains("too deep"), "{text}: {error}");
    }
}

#[test]
fn a_datum_that_sharing_makes_huge_is_stopped() {
    // Forty doublings by sharing: small in memory, 2^40 as a tree.
    let text = "(define-syntax m (syntax-rules () ((_ () x) 'x) ((_ (n . r) x) (m r (x x)))))\
        (m (1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1) y)";
    assert!(error(text).contains("steps"));
}

#[test]
fn deep_nesting_is_an_error_and_long_sequences_are_not() {
    let deep = |open: &str, inner: &str, close: &str, n: usize| {
        format!("{}{inner}{}", open.repeat(n), close.repeat(n))
    };
    assert!(error(&deep("(f ", "1", ")", 2001)).contains("nested too deep"));
    assert!(error(&deep("(f ", "1", ")", 100_001)).contains("nested deeper"));
    let mut prompt = Prompt::new();
    prompt.expand(&deep("(f ", "1", ")", 900));
    prompt.expand(&deep("'(", "1", ")", 50_000));
    prompt.expand(&format!("(f {})", "1 ".repeat(100_000)));
    prompt.expand(&format!("'({})", "1 ".repeat(100_000)));
    prompt.expand(&format!("(begin {})", "(f) ".repeat(100_000)));
    prompt.expand(&format!("(define (g) {})", "(f) ".repeat(100_000)));
    prompt.expand(&format!("`(,x {})", "1 ,x ".repeat(5_000)));
    prompt.expand(&format!("(cond {})", "(a b) ".repeat(800)));
    for text in [
        format!("(cond {})", "(a b) ".repeat(100_000)),
        format!("(or {})", "a ".repeat(100_000)),
        format!("(let* ({}) 1)", "(a b) ".repeat(100_000)),
        format!("`({})", ",@x ".repeat(100_000)),
        format!("(case 1 {})", "((1) b) ".repeat(100_000)),
        deep("(let ((x ", "1", ")) x)", 330),
    ] {
        let shown = prompt.try_expand(&text);
        assert!(shown.is_ok() || shown.is_err_and(|error| error.contains("too deep")));
    }
}
