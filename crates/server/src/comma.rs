//! Comma commands: short forms for the most frequent actions at a prompt. Each is translated into a
//! Lisp text.

use core::fmt::Write;
use std::borrow::Cow;

/// The meaning of a typed text.
#[derive(Debug, PartialEq, Eq)]
pub enum Typed<'a> {
    /// A Lisp text to evaluate.
    Text(Cow<'a, str>),
    /// A message to show.
    Notice(String),
}

/// The argument of a command.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Argument {
    Nothing,
    Maybe(&'static str),
    One(&'static str),
}

struct Comma {
    word: &'static str,
    takes: Argument,
    /// The Lisp text, before and after the argument.
    text: (&'static str, &'static str),
    help: &'static str,
}

const fn comma(
    word: &'static str,
    takes: Argument,
    text: (&'static str, &'static str),
    help: &'static str,
) -> Comma {
    Comma { word, takes, text, help }
}

const COMMAS: &[Comma] = &[
    comma(
        "bt",
        Argument::Maybe("ID"),
        ("(bt ", ")"),
        "show the stack of the last error, or of a thread",
    ),
    comma(
        "locals",
        Argument::Maybe("N"),
        ("(locals ", ")"),
        "show the variables of frame N of the last error",
    ),
    comma(
        "use",
        Argument::One("EXPR"),
        ("(use-value ", ")"),
        "continue with this value in place of the failed expression",
    ),
    comma(
        "retry",
        Argument::Nothing,
        ("(retry", ")"),
        "evaluate again what failed or was interrupted, and continue",
    ),
    comma(
        "time",
        Argument::One("EXPR"),
        ("(timed (lambda () ", "))"),
        "evaluate, and show how long it took",
    ),
    comma("ps", Argument::Nothing, ("(ps", ")"), "list your threads"),
    comma(
        "top",
        Argument::Maybe("SECONDS"),
        ("(top ", ")"),
        "show which threads use the processors",
    ),
    comma(
        "profile",
        Argument::One("EXPR"),
        ("(profile-report (profile (lambda () ", ")))"),
        "evaluate, and show where the time went",
    ),
    comma("calls", Argument::Nothing, ("(system-calls", ")"), "count the calls of the Lisp system"),
    comma("kill", Argument::One("ID"), ("(kill ", ")"), "terminate a thread"),
    comma("suspend", Argument::One("ID"), ("(suspend ", ")"), "stop a thread"),
    comma("resume", Argument::One("ID"), ("(resume ", ")"), "continue a stopped thread"),
    comma("gc", Argument::Nothing, ("(gc", ")"), "collect garbage"),
    comma("exit", Argument::Nothing, ("(exit", ")"), "leave; so does Ctrl-D"),
];

/// Translates what the user has typed.
pub fn typed(text: &str) -> Typed<'_> {
    let Some(command) = text.trim().strip_prefix(',') else { return Typed::Text(text.into()) };
    let (word, rest) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
    let rest = rest.trim();
    if word == "help" {
        return Typed::Notice(help());
    }
    let Some(comma) = COMMAS.iter().find(|comma| comma.word == word) else {
        return Typed::Notice(format!("there is no command ,{word}; ,help lists them\n"));
    };
    match (comma.takes, rest) {
        (Argument::Nothing, rest) if !rest.is_empty() => {
            Typed::Notice(format!(",{word} takes no argument\n"))
        }
        (Argument::One(what), "") => Typed::Notice(format!(",{word} needs an argument: {what}\n")),
        _ => Typed::Text(format!("{}{rest}{}", comma.text.0, comma.text.1).into()),
    }
}

fn help() -> String {
    let mut text =
        String::from("Type Scheme forms. Tab completes names, Ctrl-C interrupts. Commands:\n");
    for Comma { word, takes, help, .. } in COMMAS {
        let usage = match takes {
            Argument::Nothing => (*word).to_owned(),
            Argument::Maybe(what) => format!("{word} [{what}]"),
            Argument::One(what) => format!("{word} {what}"),
        };
        writeln!(text, "  ,{usage:<16} {help}").expect("writing to a string cannot fail");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{Typed, typed};

    #[test]
    fn comma_commands_become_lisp_text() {
        for (text, expected) in [
            ("(car x)", "(car x)"),
            (" ,bt ", "(bt )"),
            (",bt 7", "(bt 7)"),
            (",use (+ 1\n 2)", "(use-value (+ 1\n 2))"),
            (",time (f)", "(timed (lambda () (f)))"),
        ] {
            assert_eq!(typed(text), Typed::Text(expected.into()), "{text}");
        }
    }

    #[test]
    fn unknown_commands_are_reported() {
        for (text, part) in [
            (",nonsense", "there is no command ,nonsense"),
            (",", "there is no command ,;"),
            (",use", ",use needs an argument: EXPR"),
            (",ps 3", ",ps takes no argument"),
            (",help", ",suspend ID"),
        ] {
            let Typed::Notice(notice) = typed(text) else { panic!("{text} is evaluated") };
            assert!(notice.contains(part) && notice.ends_with('\n'), "{text}: {notice}");
        }
    }
}
