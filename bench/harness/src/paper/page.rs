//! The page: one HTML file that needs no network.

use super::catalogue::{Entry, PAPERS, Paper};
use super::chart::{self, axis};
use super::escape::escape;
use super::figure::{Cell, Claim, Figure, Published, Table, Verdict};
use crate::statistics::Spread;
use core::fmt::Write;

/// What the head of the page says of the run.
#[derive(Debug)]
pub struct Run<'a> {
    /// The machine, and its load before.
    pub host: &'a str,
    /// The day, as `2026-11-26`.
    pub date: &'a str,
    /// The command that makes the page.
    pub command: &'a str,
    /// Whether sizes were those of `--quick`.
    pub is_quick: bool,
}

/// The page of these entries.
pub fn page(run: &Run<'_>, figures: &[(&'static Entry, Figure)]) -> String {
    let mut text = String::with_capacity(1 << 20);
    put(
        &mut text,
        format_args!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<link rel=\"icon\" href=\"data:,\">\n\
         <title>The five papers, measured again</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n"
        ),
    );
    head(&mut text, run);
    summary(&mut text, figures);
    for paper in &PAPERS {
        let own: Vec<_> = figures.iter().filter(|(entry, _)| is_of(paper, entry)).collect();
        if own.is_empty() {
            continue;
        }
        put(
            &mut text,
            format_args!(
                "<section>\n<h2 id=\"paper{0}\">Paper {0}: {1}</h2>\n<p class=\"authors\">{2}. Section by \
             section: <code>{3}</code></p>\n",
                paper.number,
                escape(paper.title),
                escape(paper.authors),
                paper.page
            ),
        );
        for (entry, figure) in own {
            article(&mut text, run, entry, figure);
        }
        text += "</section>\n";
    }
    put(&mut text, format_args!("<script>\n{SCRIPT}</script>\n</body>\n</html>\n"));
    text
}

fn is_of(paper: &Paper, entry: &Entry) -> bool {
    paper.entries.iter().any(|other| other.id == entry.id)
}

fn head(text: &mut String, run: &Run<'_>) {
    put(
        text,
        format_args!(
            "<header>\n<h1>The five papers, measured again</h1>\n<p>Every table and figure of the papers \
         that Kyocho follows: what was published, what this machine measures, and why they agree or \
         differ. Compare ratios, not times: the published times are those of machines of 1993 to \
         2002.</p>\n<p class=\"facts\">{}. {}. <code>{}</code></p>\n",
            escape(run.host),
            escape(run.date),
            escape(run.command)
        ),
    );
    if run.is_quick {
        *text += "<p class=\"note\">Made with <code>--quick</code>: small sizes and few rounds, which \
                  show that everything runs. Values vary more than those of a full run.</p>\n";
    }
    *text += "<nav>";
    for paper in &PAPERS {
        put(text, format_args!("<a href=\"#paper{0}\">Paper {0}</a> ", paper.number));
    }
    *text += "</nav>\n</header>\n";
}

/// All ratios that the papers argue from, in one table.
fn summary(text: &mut String, figures: &[(&'static Entry, Figure)]) {
    *text += "<section>\n<h2 id=\"summary\">What the papers argue from</h2>\n<div class=\"wide\">\
              <table class=\"sortable\"><thead><tr><th>where</th><th>ratio</th>\
              <th class=\"number\">published</th><th class=\"number\">here</th><th></th></tr></thead>\
              <tbody>\n";
    for (entry, claim) in
        figures.iter().flat_map(|(entry, figure)| figure.claims.iter().map(move |c| (entry, c)))
    {
        put(
            text,
            format_args!(
                "<tr><td><a href=\"#{0}\">{0}</a></td>{1}</tr>\n",
                entry.id,
                claim_cells(claim)
            ),
        );
    }
    *text += "</tbody></table></div>\n";
    let missing: Vec<_> = figures.iter().filter(|(_, figure)| !figure.has_values()).collect();
    if !missing.is_empty() {
        *text += "<p>Not measured in this run:</p>\n<ul>\n";
        for (entry, figure) in missing {
            let why = figure.notes.first().map_or("no values", String::as_str);
            put(
                text,
                format_args!("<li><a href=\"#{0}\">{0}</a>: {1}</li>\n", entry.id, escape(why)),
            );
        }
        *text += "</ul>\n";
    }
    *text += "</section>\n";
}

fn claim_cells(claim: &Claim) -> String {
    let here = match &claim.measured {
        Ok(spread) => number_cell(spread.median, &with_range(spread)),
        Err(why) => format!("<td class=\"words\">{}</td>", escape(why)),
    };
    let (class, verdict) = match claim.verdict() {
        Verdict::Holds => ("holds", "holds"),
        Verdict::Weaker => ("weaker", "smaller"),
        Verdict::Reversed => ("reversed", "reversed"),
        Verdict::Open => ("open", ""),
    };
    format!(
        "<td class=\"what\">{}</td><td class=\"{}\">{}</td>{here}<td class=\"{class}\">{verdict}</td>",
        escape(&claim.what),
        if claim.published.least().is_some() { "number" } else { "words" },
        published(claim.published)
    )
}

fn published(value: Published) -> String {
    match value {
        Published::Exactly(value) => axis::short(value),
        Published::AtLeast(value) => format!("{} or more", axis::short(value)),
        Published::Between(low, high) => format!("{} to {}", axis::short(low), axis::short(high)),
        Published::Words(words) => escape(words),
        Published::Picture => "only in a picture".into(),
    }
}

fn article(text: &mut String, run: &Run<'_>, entry: &Entry, figure: &Figure) {
    put(
        text,
        format_args!(
            "<article id=\"{0}\">\n<h3>{1} <a class=\"anchor\" href=\"#{0}\">{0}</a></h3>\n\
         <p class=\"facts\">There: {2}.</p>\n",
            entry.id,
            escape(entry.title),
            escape(entry.there)
        ),
    );
    if !figure.has_values() {
        *text += "<p class=\"missing\">Not measured in this run.</p>\n";
    }
    if !figure.charts.is_empty() {
        *text += "<div class=\"charts\">\n";
        figure.charts.iter().for_each(|plot| *text += &chart::draw(plot));
        *text += "</div>\n";
    }
    if !figure.claims.is_empty() {
        *text += "<div class=\"wide\"><table><thead><tr><th>ratio</th><th class=\"number\">published\
                  </th><th class=\"number\">here</th><th></th></tr></thead><tbody>\n";
        for claim in &figure.claims {
            put(text, format_args!("<tr>{}</tr>\n", claim_cells(claim)));
        }
        *text += "</tbody></table></div>\n";
    }
    put(text, format_args!("<p class=\"why\">{}</p>\n", escape(entry.why)));
    figure
        .tables
        .iter()
        .filter(|table| !table.rows.is_empty())
        .for_each(|table| *text += &draw(table));
    for note in &figure.notes {
        put(text, format_args!("<p class=\"note\">{}</p>\n", escape(note)));
    }
    let quick = if run.is_quick { " --quick" } else { "" };
    put(
        text,
        format_args!(
            "<p class=\"facts\">Again: <code>kyocho paper{quick} --only {}</code></p>\n</article>\n",
            entry.id
        ),
    );
}

fn draw(table: &Table) -> String {
    let heads: String = table
        .columns
        .iter()
        .map(|column| format!("<th class=\"number\">{}</th>", escape(column)))
        .collect();
    let rows: String = table
        .rows
        .iter()
        .map(|(name, cells)| {
            let cells: String = cells.iter().map(cell).collect();
            format!("<tr><th scope=\"row\">{}</th>{cells}</tr>\n", escape(name))
        })
        .collect();
    format!(
        "<div class=\"wide\"><table class=\"sortable\"><caption>{}</caption><thead><tr><th></th>{heads}\
         </tr></thead><tbody>\n{rows}</tbody></table></div>\n",
        escape(&table.caption)
    )
}

fn cell(cell: &Cell) -> String {
    match cell {
        Cell::Published(value, unit) => {
            number_cell(*value, &format!("<em>{}</em>", with_unit(*value, unit)))
        }
        Cell::Counted(value, unit) => number_cell(*value, &with_unit(*value, unit)),
        Cell::Measured(spread, unit) => {
            let [median, least, most] =
                [spread.median, spread.least, spread.most].map(|value| with_unit(value, unit));
            let shown = format!("<span title=\"{least} to {most}\">{median}</span>");
            number_cell(spread.median, &shown)
        }
        Cell::Text(words) => format!("<td>{}</td>", escape(words)),
        Cell::None => "<td class=\"number\">-</td>".into(),
    }
}

fn with_range(spread: &Spread) -> String {
    format!(
        "{} <small>({} to {})</small>",
        axis::short(spread.median),
        axis::short(spread.least),
        axis::short(spread.most)
    )
}

/// A value with its unit. Times are shown in the unit in which they have few digits.
fn with_unit(value: f64, unit: &str) -> String {
    const TIMES: [(&str, f64); 4] = [("ns", 1.0), ("µs", 1e3), ("ms", 1e6), ("s", 1e9)];
    let (value, unit) = match TIMES.iter().position(|(name, _)| *name == unit) {
        Some(given) => {
            let ns = value * TIMES[given].1;
            let fits = |(_, size): &&(&str, f64)| ns.abs() >= *size;
            let (name, size) = TIMES[given..].iter().rev().find(fits).unwrap_or(&TIMES[given]);
            (ns / size, *name)
        }
        None => (value, unit),
    };
    let number = axis::short(value);
    if unit.is_empty() { number } else { format!("{number}&nbsp;{}", escape(unit)) }
}

/// A cell that sorts by `value` and shows `shown`, which is HTML.
fn number_cell(value: f64, shown: &str) -> String {
    format!("<td class=\"number\" data-value=\"{value}\">{shown}</td>")
}

fn put(text: &mut String, what: core::fmt::Arguments<'_>) {
    text.write_fmt(what).expect("a string takes any text");
}

/// The look of the page, in light and dark, on narrow screens, and on paper.
const STYLE: &str = include_str!("page/style.css");
/// Sorts a table by the column whose head is clicked.
const SCRIPT: &str = include_str!("page/sort.js");

#[cfg(test)]
mod tests;
