//! Executes every console block and every program of the README and the book.
//!
//! A page is one terminal session. Its fenced blocks are taken in order:
//!
//! | block | what the test does |
//! |---|---|
//! | `console` | runs each `$ command` (`> ` continues one) and compares what is printed |
//! | `scheme` | evaluates it with `kyocho`; the values printed must be those after `; => ` |
//! | `rust`, `c`, `toml`, `python`, `sh` | nothing without one of the marks below, which is an error |
//! | `text`, `json` | nothing |
//!
//! A mark is an HTML comment directly above the block:
//!
//! | mark | meaning |
//! |---|---|
//! | `from: FILE` | the block is an exact excerpt of this file of the repository |
//! | `file: NAME` | the block is written to this file of the session, for later commands |
//! | `wait until: COMMAND` | the block is run once this command succeeds |
//! | `needs: COMMAND` | the block is skipped, and reported, if this command fails |
//! | `varies: WORD, ...` | of a line that begins with such a word, only this word is compared |
//! | `not run: REASON` | the block is skipped, and reported with this reason |
//!
//! In expected output, `[..]` matches anything within a line, and a line `...` any number of lines.
//! A number before a unit of time matches every number. `? N` is the exit status of a command that
//! fails.
//!
//! `KYOCHO_BOOK_PAGE=docs/start.md` runs one page. `KYOCHO_WRITE_BOOK=1` writes what was printed
//! into the blocks that differ and have no wildcards.

use kyocho_sys::skip::skip;
use page::{Block, Kind, Page};
use session::Outcome;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

// Cargo builds the libraries for C only if their crates are used.
use kyocho_dsm_c as _;
use kyocho_ffi as _;

#[path = "book/page.rs"]
mod page;
#[path = "book/session.rs"]
mod session;
#[path = "book/transcript.rs"]
mod transcript;

/// The results of all pages.
#[derive(Debug, Default)]
struct Report {
    executed: usize,
    failures: Vec<String>,
    /// Blocks that were not run: place and reason.
    skipped: Vec<String>,
}

fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    here.canonicalize().expect("the repository is where it was built")
}

/// The README and all pages of the book, relative to the repository.
fn pages() -> Vec<PathBuf> {
    let mut found = vec![PathBuf::from("README.md"), PathBuf::from("bench/README.md")];
    let mut folders = vec![PathBuf::from("docs")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(root().join(&folder)).expect("a folder of the book").flatten() {
            let path = folder.join(entry.file_name());
            if entry.path().is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// Runs the pages, once for all tests of this file.
fn report() -> &'static Report {
    static REPORT: OnceLock<Report> = OnceLock::new();
    REPORT.get_or_init(|| {
        let wanted = std::env::var_os("KYOCHO_BOOK_PAGE").map(PathBuf::from);
        let mut report = Report::default();
        for path in pages().iter().filter(|page| wanted.as_ref().is_none_or(|one| one == *page)) {
            check(path, &mut report);
        }
        report
    })
}

fn check(path: &Path, report: &mut Report) {
    let name = path.display().to_string();
    let text = fs::read_to_string(root().join(path)).expect("a page can be read");
    let mut page = match Page::parse(&name, &text) {
        Ok(page) => page,
        Err(error) => return report.failures.push(error),
    };
    let mut session = Vec::new();
    for (index, block) in page.blocks.iter_mut().enumerate() {
        let place = format!("{name}:{}", block.line);
        if let Some(reason) = &block.reason {
            report.skipped.push(format!("{place} ({reason})"));
        } else if let Some(source) = &block.from {
            report.executed += 1;
            report.failures.extend(not_an_excerpt(&place, source, &block.text));
        } else if block.kind.is_executed() || block.file.is_some() {
            session.push(index);
        } else if block.kind != Kind::Text {
            report.failures.push(format!("{place}: a block of this kind needs a mark"));
        }
    }
    if session.is_empty() {
        return;
    }
    let chosen: Vec<&Block> = session.iter().map(|index| &page.blocks[*index]).collect();
    let outcomes = session::run(&name, &root(), &chosen);
    for (block, outcome) in chosen.iter().zip(outcomes) {
        judge(&format!("{name}:{}", block.line), path, block, outcome, report);
    }
}

fn judge(place: &str, path: &Path, block: &Block, outcome: Outcome, report: &mut Report) {
    match outcome {
        Outcome::Skipped(why) => report.skipped.push(format!("{place} ({why})")),
        Outcome::Printed(printed) => {
            report.executed += 1;
            let expected = block.expected();
            if !transcript::matches(&expected, &printed, &block.varies) {
                if std::env::var_os("KYOCHO_WRITE_BOOK").is_some() {
                    page::write_anew(&root().join(path), block, &printed);
                }
                report.failures.push(format!(
                    "{place}: expected\n{}\n---- printed\n{}",
                    expected.join("\n"),
                    printed.join("\n"),
                ));
            }
        }
    }
}

/// A failure if `text` is not an excerpt of the file `source`. It may be part of a `//!` comment.
fn not_an_excerpt(place: &str, source: &str, text: &str) -> Option<String> {
    let Ok(file) = fs::read_to_string(root().join(source)) else {
        return Some(format!("{place}: there is no {source}"));
    };
    let plain = |line: &str| {
        let bare =
            line.strip_prefix("//!").map_or(line, |rest| rest.strip_prefix(' ').unwrap_or(rest));
        bare.trim_end().to_owned()
    };
    let lines: Vec<String> = file.lines().map(plain).collect();
    let wanted: Vec<String> = text.lines().map(plain).collect();
    let found = lines.windows(wanted.len().max(1)).any(|window| window == wanted);
    (!found).then(|| format!("{place}: not an excerpt of {source}:\n{text}"))
}

#[test]
fn the_book_shows_what_the_commands_print() {
    let report = report();
    assert!(
        report.failures.is_empty(),
        "{} of {} blocks differ\n\n{}",
        report.failures.len(),
        report.executed,
        report.failures.join("\n\n"),
    );
    assert!(report.executed > 0, "no block was executed");
}

#[test]
fn blocks_that_cannot_run_are_named() {
    let skipped = &report().skipped;
    if !skipped.is_empty() {
        skip("blocks_of_the_book", &format!("{} blocks: {}", skipped.len(), skipped.join("; ")));
    }
}

/// The links in `text` to files of the repository: path, and heading after `#`.
fn links(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    targets
        .filter(|target| !target.contains("://"))
        .map(|target| target.split_once('#').unwrap_or((target, "")))
}

/// Whether the page has a heading with this anchor, formed as GitHub forms them.
fn has_heading(page: &Path, anchor: &str) -> bool {
    let text = fs::read_to_string(page).unwrap_or_default();
    let kept = |c: char| c.is_alphanumeric() || "-_ ".contains(c);
    text.lines().filter(|line| line.starts_with('#')).any(|line| {
        let title = line.trim_start_matches('#').trim().to_lowercase();
        title.chars().filter(|c| kept(*c)).collect::<String>().replace(' ', "-") == anchor
    })
}

#[test]
fn links_lead_to_files_and_headings() {
    let mut dead = Vec::new();
    for page in pages() {
        let path = root().join(&page);
        let text = fs::read_to_string(&path).expect("a page can be read");
        let folder = path.parent().expect("a page lies in a folder");
        for (file, anchor) in links(&text) {
            let target = if file.is_empty() { path.clone() } else { folder.join(file) };
            if !target.exists() || !anchor.is_empty() && !has_heading(&target, anchor) {
                dead.push(format!("{}: {file}#{anchor}", page.display()));
            }
        }
    }
    assert!(dead.is_empty(), "links that lead nowhere:\n{}", dead.join("\n"));
}

/// The files and folders of the repository that code spans name. A span's first word counts.
fn sources_named_in(text: &str) -> impl Iterator<Item = &str> {
    const FOLDERS: [&str; 6] = ["crates/", "bench/", "kernel/", "scripts/", "examples/", "docs/"];
    let mut in_block = false;
    let lines = text.lines().filter(move |line| {
        let is_fence = line.starts_with("```");
        in_block ^= is_fence;
        !in_block && !is_fence
    });
    let spans = lines.flat_map(|line| line.split('`').skip(1).step_by(2));
    let words = spans.filter_map(|span| span.split_whitespace().next());
    words.filter(|word| {
        FOLDERS.iter().any(|folder| word.starts_with(folder)) && !word.starts_with("bench/out")
    })
}

#[test]
fn sources_that_a_page_names_are_there() {
    let (mut found, mut missing) = (0, Vec::new());
    for page in pages() {
        let text = fs::read_to_string(root().join(&page)).expect("a page can be read");
        for source in sources_named_in(&text) {
            found += 1;
            if !root().join(source).exists() {
                missing.push(format!("{}: {source}", page.display()));
            }
        }
    }
    assert!(missing.is_empty(), "sources that are not there:\n{}", missing.join("\n"));
    assert!(found > 300, "{found} names of sources");
}

#[test]
fn the_summary_lists_every_page_once() {
    let summary =
        fs::read_to_string(root().join("docs/SUMMARY.md")).expect("the table of contents");
    let listed: Vec<PathBuf> =
        links(&summary).map(|(file, _)| Path::new("docs").join(file)).collect();
    let times = |page: &PathBuf| listed.iter().filter(|one| *one == page).count();
    let wrong: Vec<PathBuf> = pages()
        .into_iter()
        .filter(|page| page.starts_with("docs") && !page.ends_with("SUMMARY.md"))
        .filter(|page| times(page) != 1)
        .collect();
    assert!(wrong.is_empty(), "docs/SUMMARY.md does not list these pages exactly once: {wrong:?}");
}

#[test]
fn the_glossary_has_each_term_once() {
    let text = fs::read_to_string(root().join("docs/GLOSSARY.md")).expect("the glossary");
    let cells = text.lines().filter_map(|line| line.strip_prefix("| ")?.split(" | ").next());
    let lists = cells.filter(|cell| *cell != "term").flat_map(|cell| cell.split(", "));
    let terms = lists.flat_map(|list| list.split("; ")).flat_map(|list| list.split(": "));
    let mut seen = BTreeSet::new();
    let twice: Vec<&str> = terms.map(str::trim).filter(|term| !seen.insert(*term)).collect();
    assert!(twice.is_empty(), "more than once: {twice:?}");
    assert!(seen.len() > 100, "{} terms were found", seen.len());
}

/// The names of functions in the Rust sources below `folder`.
fn functions(folder: &Path, names: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).expect("a folder of the sources can be read") {
        let path = entry.expect("an entry can be read").path();
        if path.is_dir() && !path.ends_with("target") {
            functions(&path, names);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).expect("a source can be read");
            let after = text.split("fn ").skip(1);
            let ends = |c: char| !c.is_alphanumeric() && c != '_';
            names.extend(after.filter_map(|rest| rest.split(ends).next()).map(str::to_owned));
        }
    }
}

/// The words with underscores in the C sources below `folder`, among them the names of functions.
fn words_of_c(folder: &Path, names: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).expect("a folder of the sources can be read") {
        let path = entry.expect("an entry can be read").path();
        if path.is_dir() {
            words_of_c(&path, names);
        } else if path.extension().is_some_and(|extension| extension == "c" || extension == "h") {
            let text = fs::read_to_string(&path).expect("a source can be read");
            let words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
            names.extend(words.filter(|word| word.contains('_')).map(str::to_owned));
        }
    }
}

/// The tests that the tables of a page name: sentences with underscores. `...` cuts one short.
fn tests_named_in(text: &str) -> impl Iterator<Item = &str> {
    let rows = text.lines().filter(|line| line.starts_with('|'));
    let words = rows.flat_map(|row| row.split('`').skip(1).step_by(2));
    let names = words.filter_map(|word| word.rsplit("::").next());
    let of_names = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "_.".contains(c);
    names.filter(move |name| name.chars().all(of_names)).filter(|name| {
        name.starts_with(|c: char| c.is_ascii_lowercase()) && name.matches('_').count() >= 3
    })
}

#[test]
fn tests_that_a_page_names_are_there() {
    let mut names = BTreeSet::new();
    functions(&root().join("crates"), &mut names);
    words_of_c(&root().join("kernel"), &mut names);
    let (mut found, mut missing) = (0, Vec::new());
    for page in pages() {
        let text = fs::read_to_string(root().join(&page)).expect("a page can be read");
        for test in tests_named_in(&text) {
            let is_meant = |name: &String| match test.strip_suffix("...") {
                Some(begin) => name.starts_with(begin),
                None => name == test,
            };
            if names.iter().any(is_meant) {
                found += 1;
            } else {
                missing.push(format!("{}: {test}", page.display()));
            }
        }
    }
    assert!(missing.is_empty(), "tests that are not there:\n{}", missing.join("\n"));
    assert!(found > 30, "{found} names of tests");
}
