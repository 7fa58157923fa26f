use super::{fuzz_compiler, fuzz_expander, fuzz_reader};
use proptest::prelude::{Just, Strategy, any, prop_oneof, proptest};
use proptest::test_runner::Config;

/// Real programs to mutate: every special form, macros, libraries, the whole lexical syntax.
const SEEDS: &[&str] = &[
    include_str!("seeds.scm"),
    kyocho_syntax::world::DERIVED_FORMS,
    kyocho_library::prelude::SOURCES[0].1,
];

/// Fragments whose combinations reach more code than random bytes do.
const PIECES: &[&str] = &[
    "(",
    ")",
    "(",
    ")",
    " ",
    "'",
    "`",
    ",",
    ",@",
    "#(",
    "#u8(",
    "#;",
    "#|",
    "|#",
    "|",
    "\"",
    "\\",
    ".",
    "...",
    "_",
    "=>",
    "else",
    "define",
    "define-syntax",
    "syntax-rules",
    "let",
    "let*",
    "letrec",
    "let-syntax",
    "lambda",
    "case-lambda",
    "if",
    "cond",
    "case",
    "do",
    "quote",
    "quasiquote",
    "unquote",
    "begin",
    "set!",
    "guard",
    "parameterize",
    "delay",
    "define-values",
    "let-values",
    "define-record-type",
    "import",
    "define-library",
    "export",
    "only",
    "rename",
    "(scheme base)",
    "cond-expand",
    "and",
    "or",
    "not",
    "when",
    "x",
    "y",
    "f",
    "1",
    "-1/2",
    "1e400",
    "#e1e9",
    "#\\x",
    "#0=",
    "#0#",
    "#t",
    "\n",
    ";",
    "λ",
    "cut",
    "<>",
    "syntax-error",
];

fn config(cases: u32) -> Config {
    Config { cases, failure_persistence: None, ..Config::default() }
}

fn pieces() -> impl Strategy<Value = String> {
    let piece = (0..PIECES.len()).prop_map(|at| PIECES[at]);
    proptest::collection::vec(piece, 0..120).prop_map(|pieces| pieces.join(" "))
}

/// A change to a program: the position, the length removed, the text inserted.
fn mutations() -> impl Strategy<Value = Vec<(usize, usize, String)>> {
    let insert = prop_oneof![
        (0..PIECES.len()).prop_map(|at| PIECES[at].to_owned()),
        Just(String::new()),
        any::<char>().prop_map(String::from),
    ];
    proptest::collection::vec((any::<usize>(), 0..12usize, insert), 1..12)
}

fn mutate(seed: &str, mutations: &[(usize, usize, String)]) -> String {
    let mut text: Vec<char> = seed.chars().collect();
    for (at, gone, insert) in mutations {
        let at = at % (text.len() + 1);
        let end = (at + gone).min(text.len());
        text.splice(at..end, insert.chars());
    }
    text.into_iter().collect()
}

proptest! {
    #![proptest_config(config(3000))]

    #[test]
    fn no_bytes_break_the_reader(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        fuzz_reader(&bytes);
    }

    #[test]
    fn no_pieces_break_the_reader(text in pieces()) {
        fuzz_reader(text.as_bytes());
    }
}

proptest! {
    #![proptest_config(config(1500))]

    #[test]
    fn no_pieces_break_the_expander(text in pieces()) {
        fuzz_expander(text.as_bytes());
    }

    #[test]
    fn no_mutated_program_breaks_the_expander(seed in 0..SEEDS.len(), mutations in mutations()) {
        fuzz_expander(mutate(SEEDS[seed], &mutations).as_bytes());
    }
}

proptest! {
    #![proptest_config(config(400))]

    #[test]
    fn no_pieces_break_the_compiler(text in pieces()) {
        fuzz_compiler(text.as_bytes());
    }

    #[test]
    fn no_mutated_program_breaks_the_compiler(seed in 0..SEEDS.len(), mutations in mutations()) {
        fuzz_compiler(mutate(SEEDS[seed], &mutations).as_bytes());
    }
}

/// The seeds must compile without an error; otherwise mutations of them are never read to their
/// end.
#[test]
fn the_seeds_are_complete_programs() {
    for seed in SEEDS {
        let data = kyocho_syntax::reader::read_all(seed, "seed").unwrap();
        assert_eq!(fuzz_compiler(seed.as_bytes()), data.len());
    }
}
