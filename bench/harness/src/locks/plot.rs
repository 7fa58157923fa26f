//! Figures 12 and 13 of paper 0.

use super::CROWDS;
use super::report::{Curve, METHODS, OPERATIONS, Report};
use crate::legend;
use plotters::coord::ranged1d::{IntoSegmentedCoord, SegmentValue};
use plotters::prelude::*;

type Failure = Box<dyn core::error::Error>;

const SIZE: (u32, u32) = (760, 480);

/// Colours that the colour-blind can distinguish (Okabe and Ito).
fn colour(name: &str) -> RGBColor {
    match name {
        "restartable" | "microprocesses" => RGBColor(213, 94, 0),
        "rseq" => RGBColor(0, 114, 178),
        "atomics" => RGBColor(0, 158, 115),
        "lamport" => RGBColor(204, 121, 167),
        "signals-blocked" => RGBColor(230, 159, 0),
        "Go" => RGBColor(86, 180, 233),
        _ => RGBColor(110, 110, 110),
    }
}

/// Figure 12: how many times as fast as by a system call, on a logarithmic axis.
///
/// # Errors
/// Errors of the plotting library.
pub fn operations(report: &Report) -> Result<String, Failure> {
    let mut text = String::new();
    {
        let root = SVGBackend::with_string(&mut text, SIZE).into_drawing_area();
        root.fill(&WHITE)?;
        let mut chart = ChartBuilder::on(&root)
            .caption("Times as fast as by a system call (paper 0, figure 12)", ("sans-serif", 20))
            .margin(12)
            .x_label_area_size(48)
            .y_label_area_size(64)
            .build_cartesian_2d(0f64..OPERATIONS.len() as f64, (0.3f64..1000f64).log_scale())?;
        chart
            .configure_mesh()
            .disable_x_mesh()
            .x_labels(2 * OPERATIONS.len() + 1)
            .x_label_formatter(&|place| {
                let is_middle = (place.fract() - 0.5).abs() < 0.01;
                let name = OPERATIONS.get(*place as usize).filter(|_| is_middle);
                name.map_or(String::new(), |name| (*name).to_owned())
            })
            .y_desc("system call / method")
            .y_label_formatter(&|ratio| format!("{ratio}"))
            .label_style(("sans-serif", 14))
            .draw()?;
        let width = 0.8 / METHODS.len() as f64;
        for (index, method) in METHODS.iter().enumerate() {
            let fill = colour(method);
            let bars = OPERATIONS.iter().enumerate().filter_map(|(place, operation)| {
                let gain = report.gain(operation, method)?.median;
                let left = place as f64 + 0.1 + index as f64 * width;
                Some(Rectangle::new([(left, 1.0), (left + width * 0.92, gain)], fill.filled()))
            });
            chart
                .draw_series(bars)?
                .label(*method)
                .legend(move |(x, y)| Rectangle::new([(x, y - 5), (x + 12, y + 5)], fill.filled()));
        }
        let mark = PathElement::new([(0.0, 7.0), (OPERATIONS.len() as f64, 7.0)], RED);
        chart
            .draw_series([mark])?
            .label("published: 7")
            .legend(|(x, y)| PathElement::new([(x, y), (x + 12, y)], RED));
        legend::draw(&mut chart, SeriesLabelPosition::UpperLeft)?;
        root.present()?;
    }
    Ok(text)
}

/// Figure 13: items a second against the number of producers and consumers.
///
/// # Errors
/// Errors of the plotting library.
pub fn items(curves: &[Curve]) -> Result<String, Failure> {
    let points = |curve: &Curve| -> Vec<(usize, f64)> {
        (0..CROWDS.len()).filter_map(|place| Some((place, curve.mean(place)? / 1e3))).collect()
    };
    let all: Vec<f64> = curves.iter().flat_map(&points).map(|(_, items)| items).collect();
    let least = all.iter().copied().fold(1000.0, f64::min).max(1.0);
    let most = all.iter().copied().fold(1000.0, f64::max);
    let mut text = String::new();
    {
        let root = SVGBackend::with_string(&mut text, SIZE).into_drawing_area();
        root.fill(&WHITE)?;
        let mut chart = ChartBuilder::on(&root)
            .caption("Producers and consumers, by method (paper 0, figure 13)", ("sans-serif", 20))
            .margin(12)
            .x_label_area_size(48)
            .y_label_area_size(72)
            .build_cartesian_2d(
                (0..CROWDS.len() - 1).into_segmented(),
                (least / 2.0..most * 2.0).log_scale(),
            )?;
        chart
            .configure_mesh()
            .disable_x_mesh()
            .x_desc("(producers, consumers)")
            .y_desc("thousand items a second")
            .x_label_formatter(&|place| match place {
                SegmentValue::CenterOf(place) => {
                    CROWDS.get(*place).map_or(String::new(), |crowd| format!("({crowd},{crowd})"))
                }
                _ => String::new(),
            })
            .label_style(("sans-serif", 14))
            .draw()?;
        for curve in curves {
            let line = colour(curve.name);
            let joined = points(curve).into_iter();
            let joined = joined.map(|(place, items)| (SegmentValue::CenterOf(place), items));
            chart
                .draw_series(LineSeries::new(joined, line.stroke_width(2)).point_size(3))?
                .label(curve.name)
                .legend(move |(x, y)| {
                    PathElement::new([(x, y), (x + 14, y)], line.stroke_width(2))
                });
        }
        legend::draw(&mut chart, SeriesLabelPosition::UpperRight)?;
        root.present()?;
    }
    Ok(text)
}
