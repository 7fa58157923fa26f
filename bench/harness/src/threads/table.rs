//! The report as Markdown.

use crate::statistics::Spread;
use crate::threads::report::{Cell, Measured, Report, Row};
use crate::threads::workload::SECOND_FIGURES;
use std::fmt::Write;

/// The tables: ratios to Go, values, second figures, marks, systems that did not run.
pub fn markdown(report: &Report) -> String {
    let mut text = format!(
        "# Threads side by side\n\n{}; one worker each; {} rounds. Written by `bench/run`.\n\n",
        report.host, report.rounds
    );
    text += "## Ratio to Go in the same round: median (least to greatest)\n\n";
    text += "Times and memory: less is better. Semaphores are a rate: more is better.\n\n";
    grid(&mut text, report, |_, measured| match &measured.ratio {
        Some(ratio) => format!("{} ({})", figure(ratio.median), range(ratio)),
        None => "no baseline".into(),
    });
    text += "\n## Values: median (least to greatest)\n\n";
    grid(&mut text, report, |row, measured| {
        format!("{} {} ({})", figure(measured.value.median), row.unit, range(&measured.value))
    });
    second_figures(&mut text, report);
    marks(&mut text, report);
    absences(&mut text, report);
    text
}

fn grid(text: &mut String, report: &Report, cell_text: impl Fn(&Row, &Measured) -> String) {
    head(text, report, "");
    for row in &report.rows {
        line(text, &row.work.title, row, |measured| Some(cell_text(row, measured)));
    }
}

fn head(text: &mut String, report: &Report, corner: &str) {
    let names: Vec<_> = report.systems.iter().map(|(_, version)| version.as_str()).collect();
    put(text, format_args!("| {corner} | {} |\n", names.join(" | ")));
    put(text, format_args!("|---|{}\n", "---|".repeat(names.len())));
}

fn line(text: &mut String, title: &str, row: &Row, show: impl Fn(&Measured) -> Option<String>) {
    let cell = |cell: &Cell| match cell {
        Cell::Measured(measured) => show(measured).unwrap_or_else(|| "-".into()),
        Cell::Unsupported(_) => "-".into(),
        Cell::Failed(_) => "fails".into(),
    };
    let cells: Vec<_> = row.cells.iter().map(cell).collect();
    put(text, format_args!("| {title} | {} |\n", cells.join(" | ")));
}

fn second_figures(text: &mut String, report: &Report) {
    let mut open = false;
    for figure in &SECOND_FIGURES {
        for row in report.rows.iter().filter(|row| row.work.bench == figure.bench) {
            if !open {
                *text += "\n## Second figures: median (least to greatest)\n\n";
                head(text, report, "");
                open = true;
            }
            let title = format!("{}: {}", figure.bench, figure.title);
            line(text, &title, row, |measured| {
                let spread = measured.second(figure)?;
                Some(format!("{} ({})", self::figure(spread.median), range(&spread)))
            });
        }
    }
}

fn marks(text: &mut String, report: &Report) {
    let verdicts = report.verdicts();
    if verdicts.is_empty() {
        return;
    }
    *text += "\n## Kyocho against its marks\n\n| | mark | measured | |\n|---|---|---|---|\n";
    for (what, verdict) in verdicts {
        let met = if verdict.met { "met" } else { "missed" };
        put(text, format_args!("| {what} | {} | {} | {met} |\n", verdict.mark, verdict.reached));
    }
}

fn absences(text: &mut String, report: &Report) {
    let mut lines: Vec<_> = report.skipped.iter().map(|why| format!("- {why}\n")).collect();
    for row in &report.rows {
        for ((system, _), cell) in report.systems.iter().zip(&row.cells) {
            let (Cell::Unsupported(why) | Cell::Failed(why)) = cell else { continue };
            if !why.is_empty() {
                lines.push(format!("- {}, {}: {why}\n", row.work.title, system.title));
            }
        }
    }
    if !lines.is_empty() {
        *text += "\n## What did not run\n\n";
        text.extend(lines);
    }
}

fn put(text: &mut String, what: core::fmt::Arguments<'_>) {
    text.write_fmt(what).expect("a string takes any text");
}

fn range(spread: &Spread) -> String {
    format!("{} to {}", figure(spread.least), figure(spread.most))
}

/// Three significant digits; none after the point from 100 on.
fn figure(value: f64) -> String {
    let digits = match value.abs() {
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 1.0 => 2,
        _ => 3,
    };
    format!("{value:.digits$}")
}
