//! The page of `kyocho paper`, made from recorded results (`tests/measured`), in a real browser.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Browsers that have a mode without a window, by the names of their programs.
const BROWSERS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];
/// Widths of a telephone and of a large screen, in pixels.
const WIDTHS: [u32; 2] = [400, 1600];
/// Asks the browser for what a reader sees: the width of the content, the plots, and the articles
/// that have no height.
const QUESTION: &str = "<script>\
    const boxes = (what) => Array.from(document.querySelectorAll(what), (e) => e.getBoundingClientRect());\
    const isSeen = (box) => box.width > 40 && box.height > 10;\
    parent.postMessage(JSON.stringify({\
      width: document.documentElement.scrollWidth,\
      articles: boxes('article').length,\
      seen: boxes('article').filter(isSeen).length,\
      plots: boxes('.chart > svg').length,\
      seenPlots: boxes('.chart > svg').filter((box) => isSeen(box) && box.right <= innerWidth + 1).length,\
    }), '*');\
    </script>";

fn crate_folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A folder of its own for a test, below that of cargo.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&folder).expect("cargo's folder can be written");
    folder
}

/// Makes the page from the recording; returns its folder.
fn page(name: &str) -> PathBuf {
    let out = folder(name);
    let measured = crate_folder().join("tests/measured");
    let mut program = Command::new(env!("CARGO_BIN_EXE_harness"));
    program.arg("paper").arg("--measured").arg(measured).arg("--out").arg(&out);
    succeeded(&mut program);
    out
}

fn succeeded(command: &mut Command) -> Output {
    let output = command.output().expect("the program starts");
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {complaint}");
    output
}

#[test]
fn every_table_and_figure_has_values_from_the_recording() {
    let out = page("values");
    let text = std::fs::read_to_string(out.join("paper.json")).expect("the JSON was written");
    let json: Value = serde_json::from_str(&text).expect("it is JSON");
    let figures = json["figures"].as_array().expect("there are figures");
    assert!(figures.len() > 25, "{} figures", figures.len());
    let mut missing = Vec::new();
    for figure in figures {
        if figure["measured"] != true {
            missing.push(format!("{}: {}", figure["id"], figure["notes"]));
        }
        for claim in figure["claims"].as_array().into_iter().flatten() {
            if claim["here"].is_null() {
                missing.push(format!("{}: {}", figure["id"], claim["missing"]));
            }
        }
    }
    // What table 2 of paper 0 has is not measured.
    missing.retain(|line| !line.contains("0.table2"));
    assert!(missing.is_empty(), "without values:\n{}", missing.join("\n"));
    let csv = std::fs::read_to_string(out.join("paper.csv")).expect("the CSV was written");
    assert!(csv.lines().count() > 300, "{} lines of CSV", csv.lines().count());
}

#[test]
fn a_browser_shows_every_figure_on_small_and_large_screens() {
    let Some(browser) = BROWSERS.into_iter().find(|name| {
        Command::new(name).arg("--version").output().is_ok_and(|output| output.status.success())
    }) else {
        eprintln!(
            "skipped a_browser_shows_every_figure_on_small_and_large_screens: no {} is installed",
            BROWSERS.join(" or ")
        );
        return;
    };
    let out = page("browser");
    let text = std::fs::read_to_string(out.join("index.html")).expect("the page was written");
    let asked = out.join("asked.html");
    let text = text.replace("</body>", &format!("{QUESTION}</body>"));
    std::fs::write(&asked, text).expect("the folder can be written");
    let empty = out.join("empty.html");
    std::fs::write(&empty, "<!doctype html><title>nothing</title>").expect("as above");
    for width in WIDTHS {
        let [asked, empty] = [&asked, &empty].map(|page| framed(page, width));
        let shown = shown(browser, &out, &asked);
        assert_eq!(shown["seen"], shown["articles"], "{width} pixels: {shown}");
        assert_eq!(shown["seenPlots"], shown["plots"], "{width} pixels: {shown}");
        assert!(shown["plots"].as_u64() > Some(15), "{shown}");
        assert!(shown["width"].as_u64() <= Some(u64::from(width)), "too wide: {shown}");
        let [page, nothing] = [&asked, &empty].map(|page| picture_bytes(browser, &out, page));
        assert!(page > 10 * nothing, "{width} pixels: {page} bytes, an empty page {nothing}");
    }
}

/// A page that shows `page` in a frame of this width, because windows have a least width. It makes
/// the answer to [`QUESTION`] its title.
fn framed(page: &Path, width: u32) -> PathBuf {
    let name = page.file_name().expect("a page has a name").to_string_lossy();
    let frame = format!(
        "<!doctype html><title>none</title>\
         <script>onmessage = (answer) => {{ document.title = answer.data; }}</script>\
         <body style='margin:0'><iframe src='{name}' width='{width}' height='2900' \
         style='border:0'></iframe>"
    );
    let framed = page.with_file_name(format!("framed-{width}-{name}"));
    std::fs::write(&framed, frame).expect("the folder can be written");
    framed
}

/// A browser without a window, with a profile of its own.
fn headless(browser: &str, out: &Path) -> Command {
    let mut command = Command::new(browser);
    command.args(["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]);
    command.arg(format!("--user-data-dir={}", out.join("profile").display()));
    command.args(["--enable-logging=stderr", "--window-size=1700,3000"]);
    // Time passes as fast as the page permits, until the frame has answered.
    command.arg("--virtual-time-budget=20000");
    command
}

/// What the page answers to [`QUESTION`]. An error on the browser's console fails the test.
fn shown(browser: &str, out: &Path, page: &Path) -> Value {
    let mut command = headless(browser, out);
    let output = succeeded(command.arg("--dump-dom").arg(format!("file://{}", page.display())));
    let log = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!log.contains("CONSOLE"), "the page complains: {log}");
    let dom = String::from_utf8_lossy(&output.stdout).into_owned();
    let title = dom.split("<title>").nth(1).and_then(|rest| rest.split("</title>").next());
    let title = title.expect("the page has a title").replace("&quot;", "\"");
    serde_json::from_str(&title).unwrap_or_else(|_| panic!("no answer but {title}"))
}

/// The size of a picture of the page. An empty page compresses to almost nothing.
fn picture_bytes(browser: &str, out: &Path, page: &Path) -> u64 {
    let picture = out.join("picture.png");
    // A picture of an earlier page would be measured otherwise.
    let _none_yet = std::fs::remove_file(&picture);
    let mut command = headless(browser, out);
    command.arg(format!("--screenshot={}", picture.display()));
    succeeded(command.arg(format!("file://{}", page.display())));
    std::fs::metadata(&picture).expect("the picture was written").len()
}
