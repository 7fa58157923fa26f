//! The report as pictures: ratios to Go as bars on a logarithmic axis, semaphores as curves.

use crate::legend;
use crate::threads::report::{Cell, Report, Row};
use crate::threads::system::System;
use crate::threads::workload::{Better, Target};
use plotters::coord::ranged1d::{IntoSegmentedCoord, SegmentValue};
use plotters::prelude::*;

type Failure = Box<dyn core::error::Error>;

/// Colours that the colour-blind can distinguish (Okabe and Ito).
fn colour(system: &System) -> RGBColor {
    match system.name {
        "kyocho" => RGBColor(213, 94, 0),
        "go" => RGBColor(0, 114, 178),
        "tokio" => RGBColor(0, 158, 115),
        "may" => RGBColor(204, 121, 167),
        "boost" => RGBColor(230, 159, 0),
        _ => RGBColor(110, 110, 110),
    }
}

/// A bar's width; the bars of one workload leave a fifth of its width free.
fn bar_width(report: &Report) -> f64 {
    0.8 / report.systems.len() as f64
}

/// The ratio of a workload's cost to its cost on Go; less is always better.
fn cost_ratio(row: &Row, ratio: f64) -> f64 {
    match row.work.better {
        Better::Lower => ratio,
        Better::Higher => 1.0 / ratio,
    }
}

/// The mark of a workload as a cost ratio; a mark in the workload's own unit needs Go's value.
fn target_ratio(report: &Report, row: &Row) -> Option<f64> {
    match row.work.target? {
        Target::RatioToGo(mark) => Some(cost_ratio(row, mark)),
        Target::AtMost(mark) => {
            let baseline = report.rows.iter().find(|other| {
                other.work.bench == row.work.baseline()
                    && other.work.arguments == row.work.arguments
            })?;
            let go = report.systems.iter().position(|(system, _)| system.name == "go")?;
            match &baseline.cells[go] {
                Cell::Measured(measured) => Some(mark / measured.value.median),
                _ => None,
            }
        }
    }
}

/// Bars of cost ratios to Go, whiskers from least to greatest, and the marks.
///
/// # Errors
/// Errors of the plotting library.
pub fn ratios(report: &Report) -> Result<String, Failure> {
    let rows: Vec<_> = report.rows.iter().filter(|row| has_ratios(row)).collect();
    let bars = bars(report, &rows);
    let marks: Vec<_> = rows.iter().map(|row| target_ratio(report, row)).collect();
    let all =
        || bars.iter().flat_map(|bar| [bar.least, bar.most]).chain(marks.iter().copied().flatten());
    let floor = 10f64.powf(all().fold(0.1, f64::min).log10().floor());
    let ceiling = 10f64.powf(all().fold(10.0, f64::max).log10().ceil());
    let mut text = String::new();
    {
        let width = 170 + 100 * rows.len() as u32;
        let root = SVGBackend::with_string(&mut text, (width, 640)).into_drawing_area();
        root.fill(&WHITE)?;
        let mut chart = ChartBuilder::on(&root)
            .caption("Cost in ratio to Go, one worker (less is better)", ("sans-serif", 22))
            .margin(12)
            .x_label_area_size(64)
            .y_label_area_size(64)
            .build_cartesian_2d(0f64..rows.len() as f64, (floor..ceiling).log_scale())?;
        chart
            .configure_mesh()
            .disable_x_mesh()
            .disable_x_axis()
            .y_desc("ratio to Go")
            .y_label_formatter(&|ratio| format!("{ratio}"))
            .label_style(("sans-serif", 14))
            .draw()?;
        for (index, (system, version)) in report.systems.iter().enumerate() {
            let fill = colour(system);
            let own = bars.iter().filter(|bar| bar.system == index);
            chart
                .draw_series(own.map(|bar| {
                    let corners =
                        [(bar.left, 1.0), (bar.left + bar_width(report) * 0.92, bar.median)];
                    Rectangle::new(corners, fill.filled())
                }))?
                .label(version)
                .legend(move |(x, y)| Rectangle::new([(x, y - 5), (x + 12, y + 5)], fill.filled()));
        }
        chart.draw_series(bars.iter().map(|bar| {
            let middle = bar.left + bar_width(report) * 0.46;
            PathElement::new([(middle, bar.least), (middle, bar.most)], BLACK)
        }))?;
        chart.draw_series([PathElement::new([(0.0, 1.0), (rows.len() as f64, 1.0)], BLACK)])?;
        let lines = marks.iter().enumerate().filter_map(|(place, mark)| {
            let (left, right) = (place as f64 + 0.06, place as f64 + 0.94);
            mark.map(|mark| PathElement::new([(left, mark), (right, mark)], RED.stroke_width(2)))
        });
        chart
            .draw_series(lines)?
            .label("Kyocho's mark")
            .legend(|(x, y)| PathElement::new([(x, y), (x + 12, y)], RED.stroke_width(2)));
        titles(&root, &chart, &rows, floor)?;
        legend::draw(&mut chart, SeriesLabelPosition::LowerLeft)?;
        root.present()?;
    }
    Ok(text)
}

/// One bar: its position and its value.
struct Bar {
    system: usize,
    left: f64,
    median: f64,
    least: f64,
    most: f64,
}

/// Whether any system was compared with Go; others have no bar.
fn has_ratios(row: &Row) -> bool {
    row.cells
        .iter()
        .any(|cell| matches!(cell, Cell::Measured(measured) if measured.ratio.is_some()))
}

fn bars(report: &Report, rows: &[&Row]) -> Vec<Bar> {
    let mut bars = Vec::new();
    for (place, row) in rows.iter().enumerate() {
        for (system, cell) in row.cells.iter().enumerate() {
            let Cell::Measured(measured) = cell else { continue };
            let Some(ratio) = measured.ratio else { continue };
            let ends = [cost_ratio(row, ratio.least), cost_ratio(row, ratio.most)];
            bars.push(Bar {
                system,
                left: place as f64 + 0.1 + system as f64 * bar_width(report),
                median: cost_ratio(row, ratio.median),
                least: ends[0].min(ends[1]),
                most: ends[0].max(ends[1]),
            });
        }
    }
    bars
}

type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;
type Bars<'a, 'b> = ChartContext<
    'b,
    SVGBackend<'a>,
    Cartesian2d<
        plotters::coord::types::RangedCoordf64,
        plotters::coord::combinators::LogCoord<f64>,
    >,
>;

/// The names of the workloads below the axis, broken where there is a comma or a colon.
fn titles(root: &Area<'_>, chart: &Bars<'_, '_>, rows: &[&Row], floor: f64) -> Result<(), Failure> {
    use plotters::style::text_anchor::{HPos, Pos, VPos};
    let style =
        TextStyle::from(("sans-serif", 13).into_font()).pos(Pos::new(HPos::Center, VPos::Top));
    for (place, row) in rows.iter().enumerate() {
        let (x, y) = chart.backend_coord(&(place as f64 + 0.5, floor));
        for (line, words) in broken(&row.work.title).iter().enumerate() {
            root.draw(&Text::new(words.clone(), (x, y + 8 + 16 * line as i32), style.clone()))?;
        }
    }
    Ok(())
}

/// A title in lines of at most 14 letters where its words allow it.
fn broken(title: &str) -> Vec<String> {
    const LETTERS_MAX: usize = 14;
    let mut lines: Vec<String> = Vec::new();
    for word in title.split(' ') {
        match lines.last_mut() {
            Some(line) if line.len() + word.len() < LETTERS_MAX => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Paper 0, figure 13: items a second against the number of producers and consumers.
///
/// # Errors
/// Errors of the plotting library.
pub fn semaphores(report: &Report) -> Result<String, Failure> {
    let rows: Vec<_> = report.rows.iter().filter(|row| row.work.bench == "semaphores").collect();
    let names: Vec<_> = rows
        .iter()
        .map(|row| row.work.title.trim_start_matches("semaphores ").to_owned())
        .collect();
    let value = |row: &Row, system: usize| match &row.cells[system] {
        Cell::Measured(measured) => Some(measured.value),
        _ => None,
    };
    let most = rows
        .iter()
        .flat_map(|row| (0..report.systems.len()).filter_map(|system| value(row, system)))
        .fold(1.0, |most: f64, spread| most.max(spread.most));
    let mut text = String::new();
    {
        let root = SVGBackend::with_string(&mut text, (760, 480)).into_drawing_area();
        root.fill(&WHITE)?;
        if names.is_empty() {
            root.present()?;
            drop(root);
            return Ok(text);
        }
        let places = 0..names.len() - 1;
        let mut chart = ChartBuilder::on(&root)
            .caption("Producers and consumers (paper 0, figure 13)", ("sans-serif", 20))
            .margin(12)
            .x_label_area_size(48)
            .y_label_area_size(64)
            .build_cartesian_2d(places.into_segmented(), 0f64..most * 1.1)?;
        chart
            .configure_mesh()
            .disable_x_mesh()
            .x_desc("(producers, consumers)")
            .y_desc("million items a second")
            .x_label_formatter(&|place| match place {
                SegmentValue::CenterOf(place) => names.get(*place).cloned().unwrap_or_default(),
                _ => String::new(),
            })
            .label_style(("sans-serif", 14))
            .draw()?;
        for (index, (system, version)) in report.systems.iter().enumerate() {
            let line = colour(system);
            let points: Vec<_> = rows
                .iter()
                .enumerate()
                .filter_map(|(place, row)| {
                    Some((SegmentValue::CenterOf(place), value(row, index)?.median))
                })
                .collect();
            chart
                .draw_series(LineSeries::new(points, line.stroke_width(2)).point_size(3))?
                .label(version)
                .legend(move |(x, y)| {
                    PathElement::new([(x, y), (x + 14, y)], line.stroke_width(2))
                });
        }
        legend::draw(&mut chart, SeriesLabelPosition::UpperRight)?;
        root.present()?;
    }
    Ok(text)
}
