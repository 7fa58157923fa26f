use super::check;

#[test]
fn making_and_copying() {
    check(&[
        ("(string #\\a #\\λ)", "\"aλ\""),
        ("(make-string 3 #\\x)", "\"xxx\""),
        ("(string-length \"日本\")", "2"),
        ("(string-ref \"日本\" 1)", "#\\本"),
        ("(string-ref \"日本\" 2)", "string-ref 2: 0 <= index < 2"),
        ("(substring \"hello\" 1 3)", "\"el\""),
        ("(substring \"hello\" 3 1)", "substring 3: 3 <= index <= 5"),
        ("(string-append \"a\" \"日\" \"\")", "\"a日\""),
        ("(string-append \"a\" 'b)", "string-append 2 expects string"),
        ("(string->list \"abc\" 1)", "(#\\b #\\c)"),
        ("(list->string '(#\\a b))", "list->string 1 expects list of characters"),
        ("(string-copy \"abc\" 1 2)", "\"b\""),
        ("(string-reverse \"日ab\")", "\"ba日\""),
        ("(string-set! (make-string 1) 0 1)", "string-set! 3 expects character"),
    ]);
}

#[test]
fn comparison_and_case() {
    check(&[
        ("(string=? \"a\" \"a\" \"b\")", "#f"),
        ("(string<? \"a\" \"ab\" \"b\")", "#t"),
        ("(string>? \"b\" \"日\")", "#f"),
        ("(string-ci=? \"Straße\" \"STRASSE\")", "#t"),
        ("(string-upcase \"straße\")", "\"STRASSE\""),
        ("(string-downcase \"ΧΑΟΣ\")", "\"χαος\""),
        ("(string-foldcase \"ΧΑΟΣ\")", "\"χαοσ\""),
    ]);
}

#[test]
fn searching_and_splitting() {
    check(&[
        ("(%string-index \"hello\" #\\l)", "2"),
        ("(%string-rindex \"hello\" #\\l)", "3"),
        ("(string-contains \"hello\" \"ll\")", "2"),
        ("(string-contains \"hello\" \"lo\" 4)", "#f"),
        ("(string-search-forward \"l\" \"hello\" 3)", "3"),
        ("(string-search-backward \"l\" \"hello\" 5)", "4"),
        ("(string-search-all \"aa\" \"aaaa\")", "(0 1 2)"),
        ("(string-prefix? \"he\" \"hello\")", "#t"),
        ("(string-suffix? \"lo\" \"hello\")", "#t"),
        ("(string-suffix? \"hello\" \"lo\")", "#f"),
        ("(string-join '(\"a\" \"b\" \"c\"))", "\"a b c\""),
        ("(string-join '(\"a\" \"b\") \", \")", "\"a, b\""),
        ("(string-join '(\"a\" \"b\") \";\" 'suffix)", "\"a;b;\""),
        (
            "(string-join '() \"x\" 'strict-infix)",
            "string-join 1: a list that is not empty, under strict-infix",
        ),
        ("(%string-split \"a,b,,c\" #\\,)", "(\"a\" \"b\" \"\" \"c\")"),
        ("(%string-split \"a--b\" \"--\")", "(\"a\" \"b\")"),
        ("(%string-split \"\" #\\,)", "(\"\")"),
        ("(%string-trim \"  a b \")", "\"a b\""),
        ("(%string-trim-left \"  a \")", "\"a \""),
        ("(%string-trim \"   \")", "\"\""),
        ("(string-pad-left \"12\" 5 #\\0)", "\"00012\""),
        ("(string-pad-left \"12345\" 3)", "\"345\""),
        ("(string-pad-right \"12\" 4)", "\"12  \""),
        ("(string-replace \"hello\" \"日\" 1 3)", "\"h日lo\""),
    ]);
}
