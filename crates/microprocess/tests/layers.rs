//! The folders of a crate form layers: each imports only from those below it.
//!
//! ```text
//!   ARCHITECTURE.md ── blocks "layers of crates/NAME/src" ──► order of the folders, highest first
//!   crates/NAME/src ── `crate::`, `super::` outside of tests ──► arrows from folder to folder
//! ```
//!
//! A crate is checked as soon as `ARCHITECTURE.md` has a block for it. A layer is a folder of `src`
//! together with the file of the same name. The order is total. So if no arrow runs up, there is no
//! circle between folders either.
//!
//! An arrow is an import in the source text. What is used without a path is not detected: a method
//! that a higher layer adds to a type of a lower one. Such a method must not be called from below.
#![expect(clippy::unwrap_used, reason = "a test fails by a panic, in helpers too")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The beginning of the first line of a block in `ARCHITECTURE.md`.
const TITLE: &str = "layers of ";

/// One crate's folders, lowest first.
#[derive(Debug, PartialEq, Eq)]
struct Layers {
    /// The folder of the layers, relative to the workspace's root.
    src: String,
    names: Vec<String>,
}

/// A source file: its module path, and its text without comments, literals and tests.
#[derive(Debug)]
struct Source {
    module: Vec<String>,
    text: String,
}

/// The blocks in `page`.
fn layers_of(page: &str) -> Vec<Layers> {
    let mut found = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        let Some(src) = line.strip_prefix(TITLE) else { continue };
        let block = lines.by_ref().take_while(|line| !line.starts_with("```"));
        let first_words = block.filter_map(|line| line.split_whitespace().next());
        let mut names: Vec<String> = first_words.map(str::to_owned).collect();
        names.reverse();
        found.push(Layers { src: src.trim().to_owned(), names });
    }
    found
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// The length of the comment or literal at the start of `text`; 0 if it starts with code.
fn not_code(text: &str) -> usize {
    let rest = text.as_bytes();
    let until = |end: &str, from: usize| {
        text[from..].find(end).map_or(text.len(), |at| from + at + end.len())
    };
    match rest {
        [b'/', b'/', ..] => text.find('\n').unwrap_or(text.len()),
        [b'/', b'*', ..] => until("*/", 2),
        [b'r', b'"', ..] => until("\"", 2),
        [b'r', b'#', ..] => {
            let hashes = text[1..].bytes().take_while(|&byte| byte == b'#').count();
            let is_raw = rest.get(1 + hashes) == Some(&b'"');
            if is_raw { until(&format!("\"{}", "#".repeat(hashes)), hashes + 2) } else { 0 }
        }
        [b'"', ..] => {
            let mut escaped = false;
            let end = text[1..].bytes().position(|byte| {
                let ends = byte == b'"' && !escaped;
                escaped = byte == b'\\' && !escaped;
                ends
            });
            end.map_or(text.len(), |end| end + 2)
        }
        [b'\'', b'\\', _, ..] => until("'", 3),
        [b'\'', ..] => {
            // A character or a lifetime.
            let after = text[1..].char_indices().nth(1).map(|(at, _)| at + 1);
            after.filter(|&at| rest[at] == b'\'').map_or(0, |at| at + 1)
        }
        _ => 0,
    }
}

/// `text` with a space in place of each comment and each literal.
fn code_of(text: &str) -> String {
    let mut code = String::new();
    let mut rest = text;
    while let Some(next) = rest.chars().next() {
        let follows_word = code.bytes().next_back().is_some_and(is_word);
        let skipped = if next == 'r' && follows_word { 0 } else { not_code(rest) };
        if skipped == 0 {
            code.push(next);
            rest = &rest[next.len_utf8()..];
        } else {
            code.push(' ');
            rest = &rest[skipped..];
        }
    }
    code
}

/// The end of the item at the start of `text`, after its attributes.
fn end_of_item(text: &str) -> usize {
    let mut depth = 0_usize;
    let mut opened = false;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'{' | b'(' | b'[' => depth += 1,
            b'}' | b')' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        opened |= byte == b'{';
        if depth == 0 && (byte == b';' || byte == b'}' && opened) {
            return at + 1;
        }
    }
    text.len()
}

/// Removes items that are compiled only for tests from `code`. Also returns the names of those that
/// are modules with separate files.
fn without_tests(code: &str) -> (String, Vec<String>) {
    const MARK: &str = "#[cfg(test)]";
    let (mut kept, mut modules) = (String::new(), Vec::new());
    let mut rest = code;
    while let Some(at) = rest.find(MARK) {
        kept.push_str(&rest[..at]);
        let item = &rest[at + MARK.len()..];
        let end = end_of_item(item);
        let words: Vec<&str> = item[..end].split_whitespace().collect();
        let name = words.iter().position(|&word| word == "mod").and_then(|at| words.get(at + 1));
        modules.extend(name.and_then(|name| name.strip_suffix(';')).map(str::to_owned));
        rest = &item[end..];
    }
    kept.push_str(rest);
    (kept, modules)
}

/// The first words of the paths at the start of `rest`: of one path, or of each in a group.
fn first_words(rest: &str) -> Vec<String> {
    let word = |path: &str| -> String {
        path.trim_start()
            .chars()
            .take_while(|&next| next.is_ascii() && is_word(next as u8))
            .collect()
    };
    let Some(group) = rest.strip_prefix('{') else { return vec![word(rest)] };
    let mut depth = 0_usize;
    let mut starts = vec![0];
    for (at, next) in group.char_indices() {
        match next {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => starts.push(at + 1),
            _ => {}
        }
    }
    starts.into_iter().map(|at| word(&group[at..])).filter(|word| !word.is_empty()).collect()
}

/// What `source` imports by paths from the crate's root: the first word of each path. Macros belong
/// to the root.
fn imports_of(source: &Source) -> BTreeSet<String> {
    let text = &source.text;
    let mut found = BTreeSet::new();
    let mut paths = |from: usize| {
        let rest = &text[from..];
        let words = first_words(rest);
        let is_macro = words.iter().any(|word| rest.starts_with(&format!("{word}!")));
        found.extend(words.into_iter().filter(|_| !is_macro));
    };
    let starts_word = |at: usize| {
        let before = text[..at].bytes().next_back();
        !before.is_some_and(|byte| is_word(byte) || byte == b':' || byte == b'$')
    };
    for (at, start) in text.match_indices("crate::") {
        if starts_word(at) {
            paths(at + start.len());
        }
    }
    let to_root = "super::".repeat(source.module.len());
    for (at, start) in text.match_indices(&to_root) {
        if starts_word(at) {
            paths(at + start.len());
        }
    }
    found
}

/// The imports of `sources` that do not run down, described in words.
fn wrong_arrows(layers: &Layers, sources: &[Source]) -> Vec<String> {
    let place = |name: &str| layers.names.iter().position(|layer| layer == name);
    let mut wrong = Vec::new();
    for source in sources {
        let file = source.module.join("/");
        let Some(own) = place(&source.module[0]) else {
            wrong.push(format!("{file} is in no layer"));
            continue;
        };
        for target in imports_of(source) {
            match place(&target) {
                None => wrong.push(format!("{file} imports {target} from the crate's root")),
                Some(layer) if layer > own => {
                    wrong.push(format!("{file} imports up from {target}"));
                }
                Some(_) => {}
            }
        }
    }
    wrong
}

/// All files below `folder`.
fn files_below(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let (folders, files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    let deeper = folders.iter().flat_map(|folder| files_below(folder));
    files.into_iter().chain(deeper).collect()
}

/// The sources of a crate, except its root and its tests. The root's module path is empty.
fn sources_of(texts: &[(Vec<String>, String)]) -> Vec<Source> {
    let mut sources = Vec::new();
    let mut tests = Vec::new();
    for (module, text) in texts {
        let (text, names) = without_tests(&code_of(text));
        tests.extend(names.into_iter().map(|name| [module.clone(), vec![name]].concat()));
        sources.push(Source { module: module.clone(), text });
    }
    sources.retain(|source| {
        let is_test = tests.iter().any(|test| source.module.starts_with(test));
        !source.module.is_empty() && !is_test
    });
    sources
}

/// The sources below `src`.
fn read(src: &Path) -> Vec<Source> {
    let mut texts = Vec::new();
    for path in files_below(src) {
        let relative = path.strip_prefix(src).unwrap().with_extension("");
        let mut module: Vec<String> =
            relative.iter().map(|name| name.to_str().unwrap().to_owned()).collect();
        if matches!(&module[..], [name] if name == "lib" || name == "main") {
            module.clear();
        }
        if path.extension().is_some_and(|extension| extension == "rs") {
            texts.push((module, fs::read_to_string(&path).unwrap()));
        }
    }
    sources_of(&texts)
}

#[test]
fn folders_import_only_from_those_below_them() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap();
    let all = layers_of(&page);
    let own = all.iter().find(|layers| layers.src == "crates/microprocess/src");
    assert!(own.is_some_and(|layers| layers.names.len() > 1), "ARCHITECTURE.md has the layers");
    for layers in &all {
        let sources = read(&root.join(&layers.src));
        for name in &layers.names {
            let is_there = sources.iter().any(|source| source.module[0] == *name);
            assert!(is_there, "{}: no folder {name}", layers.src);
        }
        let wrong = wrong_arrows(layers, &sources);
        assert!(wrong.is_empty(), "{}:\n{}", layers.src, wrong.join("\n"));
    }
}

/// The errors in a crate with these files, whose layers are `low` and, above it, `high`.
fn wrong_with(files: &[(&str, &str)]) -> Vec<String> {
    let page = "```text\nlayers of crates/x/src\n\nhigh   what calls\nlow    what is called\n```\n";
    let layers = layers_of(page);
    assert_eq!(layers[0].names, ["low", "high"]);
    let split = |path: &str| path.split_terminator('/').map(str::to_owned).collect();
    let texts: Vec<_> =
        files.iter().map(|(path, text)| (split(path), (*text).to_owned())).collect();
    wrong_arrows(&layers[0], &sources_of(&texts))
}

#[test]
fn imports_that_run_up_are_found() {
    let up = ["low/a imports up from high"];
    assert_eq!(wrong_with(&[("low/a", "use crate::high::b;")]), up);
    assert_eq!(wrong_with(&[("low/a", "use crate::{low::{c, d}, high::b};")]), up);
    assert_eq!(wrong_with(&[("low/a", "fn f() -> u8 { crate::high::b() }")]), up);
    assert_eq!(wrong_with(&[("low/a", "use super::super::high::b;")]), up);
    assert_eq!(wrong_with(&[("low", "use super::high::b;")]), ["low imports up from high"]);
    let behind = "#[cfg(test)]\n#[path = \"x\"]\nmod tests { }\nuse crate::high::b;";
    assert_eq!(wrong_with(&[("low/a", behind)]), up);
}

#[test]
fn files_in_no_layer_are_found() {
    let root = ["low/a imports Thing from the crate's root"];
    assert_eq!(wrong_with(&[("low/a", "use crate::Thing;")]), root);
    assert_eq!(wrong_with(&[("other", "")]), ["other is in no layer"]);
}

#[test]
fn comments_literals_tests_macros_and_imports_that_run_down_are_permitted() {
    let let_be = [
        "// use crate::high::b;\n/* crate::high::b */",
        "const A: &str = \"crate::high::b\\\" crate::high::c\"; const B: char = '\"';",
        "const A: &str = r#\"crate::high::b\"#; fn f<'a>(x: &'a u8) {}",
        "#[cfg(test)]\nmod tests { use crate::high::b; fn f() { loop {} } }",
        "#[cfg(test)] use crate::high::b;",
        "crate::local! { }",
        "use $crate::high::b;",
        "use crate::low::b; use super::b; use super::super::low::b;",
    ];
    for text in let_be {
        assert_eq!(wrong_with(&[("low/a", text)]), [""; 0], "{text}");
    }
    let tests = [("low", "#[cfg(test)]\nmod tests;"), ("low/tests/a", "use crate::high::b;")];
    assert_eq!(wrong_with(&tests), [""; 0]);
    let root =
        [("", "#[cfg(test)]\nmod tests;\nuse crate::high::b;"), ("tests", "use crate::run;")];
    assert_eq!(wrong_with(&root), [""; 0]);
    assert_eq!(wrong_with(&[("high/b", "use crate::low::a;")]), [""; 0]);
}
