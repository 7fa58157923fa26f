//! The special forms of the expander. Programs refer to them through bindings, not through fixed
//! names: the built-in libraries export them like procedures.

/// A special form, or a word that has a meaning only inside one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Special {
    /// `and`.
    And,
    /// `and-let*`.
    AndLetStar,
    /// `=>`.
    Arrow,
    /// `assert`.
    Assert,
    /// `begin`.
    Begin,
    /// `case`.
    Case,
    /// `case-lambda`.
    CaseLambda,
    /// `cond`.
    Cond,
    /// `cond-expand`.
    CondExpand,
    /// `define`.
    Define,
    /// `define-library`.
    DefineLibrary,
    /// `define-record-type`.
    DefineRecordType,
    /// `define-syntax`.
    DefineSyntax,
    /// `define-values`.
    DefineValues,
    /// `delay`.
    Delay,
    /// `delay-force`.
    DelayForce,
    /// `do`.
    Do,
    /// `...`.
    Ellipsis,
    /// `else`.
    Else,
    /// `guard`.
    Guard,
    /// `if`.
    If,
    /// `import`.
    Import,
    /// `include`.
    Include,
    /// `include-ci`.
    IncludeCi,
    /// `lambda`.
    Lambda,
    /// `let`.
    Let,
    /// `let*`.
    LetStar,
    /// `let*-values`.
    LetStarValues,
    /// `let-syntax`.
    LetSyntax,
    /// `let-values`.
    LetValues,
    /// `letrec`.
    Letrec,
    /// `letrec*`.
    LetrecStar,
    /// `letrec-syntax`.
    LetrecSyntax,
    /// `or`.
    Or,
    /// `parameterize`.
    Parameterize,
    /// `quasiquote`.
    Quasiquote,
    /// `quote`.
    Quote,
    /// `receive`.
    Receive,
    /// `set!`.
    Set,
    /// `syntax-error`.
    SyntaxError,
    /// `syntax-rules`.
    SyntaxRules,
    /// `_`.
    Underscore,
    /// `unless`.
    Unless,
    /// `unquote`.
    Unquote,
    /// `unquote-splicing`.
    UnquoteSplicing,
    /// `when`.
    When,
}

/// All special forms with their usual names.
pub const SPECIALS: &[(&str, Special)] = &[
    ("...", Special::Ellipsis),
    ("=>", Special::Arrow),
    ("_", Special::Underscore),
    ("and", Special::And),
    ("and-let*", Special::AndLetStar),
    ("assert", Special::Assert),
    ("begin", Special::Begin),
    ("case", Special::Case),
    ("case-lambda", Special::CaseLambda),
    ("cond", Special::Cond),
    ("cond-expand", Special::CondExpand),
    ("define", Special::Define),
    ("define-library", Special::DefineLibrary),
    ("define-record-type", Special::DefineRecordType),
    ("define-syntax", Special::DefineSyntax),
    ("define-values", Special::DefineValues),
    ("delay", Special::Delay),
    ("delay-force", Special::DelayForce),
    ("do", Special::Do),
    ("else", Special::Else),
    ("guard", Special::Guard),
    ("if", Special::If),
    ("import", Special::Import),
    ("include", Special::Include),
    ("include-ci", Special::IncludeCi),
    ("lambda", Special::Lambda),
    ("let", Special::Let),
    ("let*", Special::LetStar),
    ("let*-values", Special::LetStarValues),
    ("let-syntax", Special::LetSyntax),
    ("let-values", Special::LetValues),
    ("letrec", Special::Letrec),
    ("letrec*", Special::LetrecStar),
    ("letrec-syntax", Special::LetrecSyntax),
    ("or", Special::Or),
    ("parameterize", Special::Parameterize),
    ("quasiquote", Special::Quasiquote),
    ("quote", Special::Quote),
    ("receive", Special::Receive),
    ("set!", Special::Set),
    ("syntax-error", Special::SyntaxError),
    ("syntax-rules", Special::SyntaxRules),
    ("unless", Special::Unless),
    ("unquote", Special::Unquote),
    ("unquote-splicing", Special::UnquoteSplicing),
    ("when", Special::When),
];
