use super::{Run, page};
use crate::paper::catalogue::chosen;
use crate::paper::figure::{Cell, Claim, Figure, Published, Table};
use crate::statistics::Spread;

const RUN: Run<'_> =
    Run { host: "2 x <CPU>", date: "2026-01-01", command: "kyocho paper", is_quick: true };

fn measured() -> Figure {
    let spread = Spread { median: 8.0, least: 7.5, most: 9.0 };
    Figure {
        claims: vec![Claim {
            what: "a over b".into(),
            published: Published::AtLeast(7.0),
            measured: Ok(spread),
        }],
        tables: vec![Table {
            caption: "times".into(),
            columns: vec!["published".into(), "here".into()],
            rows: vec![("a".into(), vec![Cell::Published(3.0, "s"), Cell::Measured(spread, "ms")])],
        }],
        ..Figure::default()
    }
}

#[test]
fn an_entry_that_could_not_be_measured_says_why_twice() {
    let entries = chosen(&["1".into()]).unwrap();
    let why = "mpicc is missing; apt-get install libopenmpi-dev";
    let figures: Vec<_> =
        entries.iter().map(|entry| (*entry, Figure::missing(why.into()))).collect();
    let text = page(&RUN, &figures);
    for entry in &entries {
        assert!(text.contains(&format!("<article id=\"{}\">", entry.id)), "{}", entry.id);
    }
    assert_eq!(text.matches(why).count(), 2 * entries.len());
}

#[test]
fn times_are_shown_in_the_unit_in_which_they_have_few_digits() {
    let shown = [(0.5, "ns"), (1500.0, "ns"), (2.3e9, "ns"), (0.2, "s"), (7.0, "B")];
    let shown = shown.map(|(value, unit)| super::with_unit(value, unit).replace("&nbsp;", " "));
    assert_eq!(shown, ["0.5 ns", "1.5 µs", "2.3 s", "0.2 s", "7 B"]);
}

#[test]
fn the_page_loads_nothing_and_closes_what_it_opens() {
    let entries = chosen(&[]).unwrap();
    let figures: Vec<_> = entries.iter().map(|entry| (*entry, measured())).collect();
    let text = page(&RUN, &figures);
    for address in ["http://", "https://", "src=\"", "@import", "url("] {
        assert!(!text.contains(address), "{address}");
    }
    assert!(text.contains("2 x &lt;CPU&gt;"));
    for tag in ["section", "article", "table", "thead", "tbody", "tr", "td", "div", "svg", "p"] {
        let opened =
            text.matches(&format!("<{tag}>")).count() + text.matches(&format!("<{tag} ")).count();
        assert_eq!(opened, text.matches(&format!("</{tag}>")).count(), "{tag}");
    }
    assert!(text.contains("holds</td>"));
}
