use super::check;

#[test]
fn pairs_and_lists() {
    check(&[
        ("(car '(1 2))", "1"),
        ("(car '())", "car 1 expects pair"),
        ("(cadr '(1 2))", "2"),
        ("(cddr '(1))", "cddr 1 expects list structure deep enough"),
        ("(caddr '(1 2 3))", "3"),
        ("(length '(1 2 3))", "3"),
        ("(length '(1 . 2))", "length 1 expects proper list"),
        ("(length '#0=(1 . #0#))", "length 1 expects proper list"),
        ("(list? '#0=(1 2 . #0#))", "#f"),
        ("(append '(1) '(2) 3)", "(1 2 . 3)"),
        ("(append)", "()"),
        ("(append '(1) '() '(2 3))", "(1 2 3)"),
        ("(append '(1 . 2) '(3))", "append 1 expects proper list"),
        ("(reverse '(1 2 3))", "(3 2 1)"),
        ("(list-tail '(1 2 3) 2)", "(3)"),
        ("(list-ref '(1 2 3) 3)", "list-ref 2: the list has only 3 elements"),
        ("(list-copy '(1 2 . 3))", "(1 2 . 3)"),
        ("(list-copy '#0=(1 2 . #0#))", "list-copy 1 expects list without a cycle"),
        ("(memq 'c '(a b c d))", "(c d)"),
        ("(%member-part '(1) '(0 (1) 2))", "((1) 2)"),
        ("(memv 1.5 '(1 1.5))", "(1.5)"),
        ("(memq 'z '#0=(a b . #0#))", "memq 2 expects proper list"),
        ("(assq 'b '((a 1) (b 2)))", "(b 2)"),
        ("(%assoc-part \"b\" '((\"a\" . 1) (\"b\" . 2)))", "(\"b\" . 2)"),
        ("(assv 1 '(1))", "assv 2 expects association list"),
        ("(cons* 1 2 '(3))", "(1 2 3)"),
        ("(take '(1 2 3) 2)", "(1 2)"),
        ("(drop '(1 2 3) 2)", "(3)"),
        ("(take-right '(1 2 3) 2)", "(2 3)"),
        ("(drop-right '(1 2 3) 2)", "(1)"),
        ("(last '(1 2 3))", "3"),
        ("(iota 3 1/2)", "(1/2 3/2 5/2)"),
        ("(concatenate '((1) (2 3) 4))", "(1 2 3 . 4)"),
        ("(append-reverse '(2 1) '(3))", "(1 2 3)"),
        ("(third '(1 2 3))", "3"),
        ("(make-list 2 'x)", "(x x)"),
    ]);
}

#[test]
fn vectors_and_bytes() {
    check(&[
        ("(vector-ref '#(1 2) 1)", "2"),
        ("(vector-ref '#(1 2) 2)", "vector-ref 2: 0 <= index < 2"),
        ("(vector-ref '#(1 2) 'a)", "vector-ref 2 expects exact non-negative integer"),
        ("(vector-ref 1 1)", "vector-ref 1 expects vector"),
        ("(vector->list '#(1 2 3) 1)", "(2 3)"),
        ("(vector->list '#(1 2 3) 2 1)", "vector->list 3: 2 <= index <= 3"),
        ("(list->vector '(1 2))", "#(1 2)"),
        ("(vector-append '#(1) '#() '#(2 3))", "#(1 2 3)"),
        ("(vector-copy '#(1 2 3) 1 2)", "#(2)"),
        ("(vector->string '#(#\\a #\\b))", "\"ab\""),
        ("(string->vector \"abc\" 1)", "#(#\\b #\\c)"),
        ("(bytevector 1 2 256)", "bytevector 3 expects byte (exact integer from 0 to 255)"),
        ("(bytevector-append #u8(1) #u8(2 3))", "#u8(1 2 3)"),
        ("(bytevector-copy #u8(1 2 3) 1)", "#u8(2 3)"),
        ("(utf8->string #u8(206 187))", "\"λ\""),
        ("(utf8->string #u8(65 255))", "utf8->string: not UTF-8 at index 1"),
        ("(string->utf8 \"λ\")", "#u8(206 187)"),
        ("(make-bytevector 3 7)", "#u8(7 7 7)"),
        ("(bytevector-u8-ref #u8(1 2) 2)", "bytevector-u8-ref 2: 0 <= index < 2"),
    ]);
}

#[test]
fn symbols_and_characters() {
    check(&[
        ("(symbol->string 'abc)", "\"abc\""),
        ("(string->symbol \"A b\")", "|A b|"),
        ("(symbol=? 'a 'a 'b)", "#f"),
        ("(boolean=? #t #t)", "#t"),
        ("(boolean=? #t 1)", "boolean=? 2 expects boolean"),
        ("(char-upcase #\\ß)", "#\\ß"),
        ("(char->integer #\\A)", "65"),
        ("(integer->char 55296)", "integer->char 1: 0..#xD7FF or #xE000..#x10FFFF"),
        ("(digit-value #\\3)", "3"),
        ("(digit-value #\\x0664)", "4"),
        ("(digit-value #\\x0ae6)", "0"),
        ("(digit-value #\\a)", "#f"),
        ("(char<? #\\a #\\b #\\c)", "#t"),
        ("(char-ci=? #\\a #\\A)", "#t"),
        ("(char-alphabetic? #\\λ)", "#t"),
        ("(char-numeric? #\\½)", "#f"),
    ]);
}
