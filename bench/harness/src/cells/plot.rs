//! Figures 3 and 4, and the same question asked of the compiled machine.

use super::report::Curve;
use crate::legend;
use plotters::prelude::*;

type Failure = Box<dyn core::error::Error>;
/// Points to be joined.
type Line = Vec<(f64, f64)>;

const SIZE: (u32, u32) = (760, 480);
const USER: RGBColor = RGBColor(0, 114, 178);
const SYSTEM: RGBColor = RGBColor(213, 94, 0);
const REAL: RGBColor = RGBColor(60, 60, 60);
const AUTO: RGBColor = RGBColor(0, 158, 115);

/// User, system and real time against the size of the cache; no caching and `auto` as levels.
///
/// # Errors
/// Errors of the plotting library.
pub(super) fn times(curve: &Curve, title: &str) -> Result<String, Failure> {
    let points: Vec<_> = curve
        .points
        .iter()
        .filter_map(|(cache, _)| Some((cache.parse::<f64>().ok()?, curve.at(cache)?)))
        .collect();
    let level = |cache: &str| curve.at(cache).map_or(0.0, |point| point.real.median);
    let (off, auto) = (level("off"), level("auto"));
    let most = points.iter().fold(off, |most: f64, (_, point)| most.max(point.real.median));
    let mut text = String::new();
    {
        let root = SVGBackend::with_string(&mut text, SIZE).into_drawing_area();
        root.fill(&WHITE)?;
        let mut chart = ChartBuilder::on(&root)
            .caption(title, ("sans-serif", 20))
            .margin(12)
            .x_label_area_size(48)
            .y_label_area_size(64)
            .build_cartesian_2d((1f64..4096f64).log_scale(), 0f64..most * 1.1)?;
        chart
            .configure_mesh()
            .x_desc("cache size, cells")
            .y_desc("time, ms")
            .light_line_style(WHITE)
            .label_style(("sans-serif", 14))
            .draw()?;
        let lines: [(&str, RGBColor, Line); 5] = [
            (
                "real time",
                REAL,
                points.iter().map(|(size, point)| (*size, point.real.median)).collect(),
            ),
            (
                "user time",
                USER,
                points.iter().map(|(size, point)| (*size, point.user.median)).collect(),
            ),
            (
                "system time",
                SYSTEM,
                points.iter().map(|(size, point)| (*size, point.system.median)).collect(),
            ),
            ("real time, no caching", RED, vec![(1.0, off), (4096.0, off)]),
            ("real time, auto", AUTO, vec![(1.0, auto), (4096.0, auto)]),
        ];
        for (name, colour, points) in lines {
            chart
                .draw_series(LineSeries::new(points, colour.stroke_width(2)).point_size(2))?
                .label(name)
                .legend(move |(x, y)| {
                    PathElement::new([(x, y), (x + 14, y)], colour.stroke_width(2))
                });
        }
        legend::draw(&mut chart, SeriesLabelPosition::UpperRight)?;
        root.present()?;
    }
    Ok(text)
}

/// Wall time over that with `auto`, against the size of the cache.
///
/// # Errors
/// Errors of the plotting library.
pub(super) fn machine(curves: &[Result<Curve, String>]) -> Result<String, Failure> {
    let curves: Vec<_> = curves.iter().flatten().collect();
    let lines: Vec<(&str, Line)> = curves
        .iter()
        .filter_map(|curve| {
            let auto = curve.at("auto")?.real.median;
            // Without caching each cell takes a message: a cache of one.
            let size = |cache: &str| if cache == "off" { Some(1.0) } else { cache.parse().ok() };
            let ratio = |cache: &str| Some((size(cache)?, curve.at(cache)?.real.median / auto));
            Some((
                curve.program.title,
                curve.points.iter().filter_map(|(cache, _)| ratio(cache)).collect(),
            ))
        })
        .collect();
    let most =
        lines.iter().flat_map(|(_, points)| points).fold(1.5, |most: f64, point| most.max(point.1));
    let mut text = String::new();
    {
        let root = SVGBackend::with_string(&mut text, SIZE).into_drawing_area();
        root.fill(&WHITE)?;
        let mut chart = ChartBuilder::on(&root)
            .caption("The compiled machine: gain from the cell cache", ("sans-serif", 20))
            .margin(12)
            .x_label_area_size(48)
            .y_label_area_size(64)
            .build_cartesian_2d((1f64..32_768f64).log_scale(), 0f64..most * 1.1)?;
        chart
            .configure_mesh()
            .x_desc("cache size, cells (1: no caching)")
            .y_desc("wall time over that with `auto`")
            .light_line_style(WHITE)
            .label_style(("sans-serif", 14))
            .draw()?;
        for ((name, points), colour) in lines.into_iter().zip([USER, SYSTEM]) {
            chart
                .draw_series(LineSeries::new(points, colour.stroke_width(2)).point_size(3))?
                .label(name)
                .legend(move |(x, y)| {
                    PathElement::new([(x, y), (x + 14, y)], colour.stroke_width(2))
                });
        }
        legend::draw(&mut chart, SeriesLabelPosition::UpperRight)?;
        root.present()?;
    }
    Ok(text)
}
