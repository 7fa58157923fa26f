//! The values of the page for programs: JSON and CSV.

use super::catalogue::Entry;
use super::figure::{Cell, Chart, Figure, Published, Verdict};
use super::page::Run;
use serde_json::{Value, json};

/// Everything as JSON.
pub fn json(run: &Run<'_>, figures: &[(&'static Entry, Figure)]) -> Value {
    let figures: Vec<_> = figures.iter().map(|(entry, figure)| entry_json(entry, figure)).collect();
    json!({ "host": run.host, "date": run.date, "quick": run.is_quick, "figures": figures })
}

fn entry_json(entry: &Entry, figure: &Figure) -> Value {
    let claims: Vec<_> = figure
        .claims
        .iter()
        .map(|claim| {
            let verdict = match claim.verdict() {
                Verdict::Holds => "holds",
                Verdict::Weaker => "smaller",
                Verdict::Reversed => "reversed",
                Verdict::Open => "open",
            };
            json!({ "what": claim.what, "published": published(claim.published),
                "here": claim.measured.as_ref().ok().map(|spread| spread.to_json()),
                "missing": claim.measured.as_ref().err(), "verdict": verdict })
        })
        .collect();
    let tables: Vec<_> = figure
        .tables
        .iter()
        .map(|table| {
            let rows: Vec<_> = table
                .rows
                .iter()
                .map(|(name, cells)| {
                    json!({ "name": name, "cells": cells.iter().map(cell).collect::<Vec<_>>() })
                })
                .collect();
            json!({ "caption": table.caption, "columns": table.columns, "rows": rows })
        })
        .collect();
    let series = figure.charts.iter().filter_map(|chart| match chart {
        Chart::Lines(lines) => Some(lines),
        Chart::Bars(_) | Chart::Matrix(_) => None,
    });
    let lines: Vec<_> = series
        .map(|lines| {
            let series: Vec<_> = lines
                .series
                .iter()
                .map(|series| json!({ "name": series.name, "points": series.points }))
                .collect();
            json!({ "title": lines.title, "axes": lines.axes, "series": series })
        })
        .collect();
    json!({ "id": entry.id, "title": entry.title, "there": entry.there, "why": entry.why,
        "measured": figure.has_values(), "claims": claims, "tables": tables, "lines": lines,
        "notes": figure.notes })
}

fn published(value: Published) -> Value {
    match value {
        Published::Exactly(value) => json!(value),
        Published::AtLeast(value) => json!({ "at_least": value }),
        Published::Between(low, high) => json!({ "least": low, "most": high }),
        Published::Words(words) => json!(words),
        Published::Picture => Value::Null,
    }
}

fn cell(cell: &Cell) -> Value {
    match cell {
        Cell::Published(value, unit) => json!({ "published": value, "unit": unit }),
        Cell::Counted(value, unit) => json!({ "value": value, "unit": unit }),
        Cell::Measured(spread, unit) => {
            let mut value = spread.to_json();
            value["unit"] = json!(unit);
            value
        }
        Cell::Text(words) => json!(words),
        Cell::None => Value::Null,
    }
}

/// The numbers of all tables, a line for each cell: which figure, table, row and column; whether it
/// was published or measured; value, least, most, unit.
pub fn csv(figures: &[(&'static Entry, Figure)]) -> String {
    let mut text = String::from("figure,table,row,column,origin,value,least,most,unit\n");
    let tables =
        figures.iter().flat_map(|(entry, figure)| figure.tables.iter().map(move |t| (entry, t)));
    for (entry, table) in tables {
        let rows = table.rows.iter();
        let cells = rows.flat_map(|(name, row)| {
            table.columns.iter().zip(row).map(move |(column, cell)| (name, column, cell))
        });
        text.extend(cells.filter_map(|(name, column, cell)| {
            let (origin, [value, least, most], unit) = numbers(cell)?;
            let words = [entry.id, &table.caption, name, column, origin].map(quoted);
            Some(format!("{},{value},{least},{most},{}\n", words.join(","), quoted(unit)))
        }));
    }
    text
}

fn numbers(cell: &Cell) -> Option<(&'static str, [f64; 3], &'static str)> {
    match cell {
        Cell::Published(value, unit) => Some(("published", [*value; 3], unit)),
        Cell::Counted(value, unit) => Some(("here", [*value; 3], unit)),
        Cell::Measured(spread, unit) => {
            Some(("here", [spread.median, spread.least, spread.most], unit))
        }
        Cell::Text(_) | Cell::None => None,
    }
}

/// A field of CSV (RFC 4180).
fn quoted(field: &str) -> String {
    if field.contains(['"', ',', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::csv;
    use crate::paper::catalogue::chosen;
    use crate::paper::figure::{Cell, Figure, Table};

    #[test]
    fn a_line_of_csv_has_one_cell_and_quotes_commas() {
        let table = Table {
            caption: "a, b".into(),
            columns: vec!["x".into(), "y".into()],
            rows: vec![("row".into(), vec![Cell::Published(1.5, "s"), Cell::None])],
        };
        let figure = Figure { tables: vec![table], ..Figure::default() };
        let entry = chosen(&["1.table2".into()]).unwrap()[0];
        let text = csv(&[(entry, figure)]);
        assert_eq!(text.lines().nth(1), Some("1.table2,\"a, b\",row,x,published,1.5,1.5,1.5,s"));
        assert_eq!(text.lines().count(), 2);
    }
}
