//! Figures 1 to 5 of paper 3, as bars.

use crate::legend;
use plotters::prelude::*;
use std::collections::BTreeMap;

type Failure = Box<dyn core::error::Error>;

const SIZE: (u32, u32) = (760, 480);
/// Colours that the colour-blind can distinguish (Okabe and Ito).
const COLOURS: [RGBColor; 3] =
    [RGBColor(110, 110, 110), RGBColor(0, 114, 178), RGBColor(213, 94, 0)];

/// Bars side by side.
struct Bars<'a> {
    title: &'a str,
    /// Label of the bars' height.
    height: &'a str,
    groups: &'a [&'a str],
    /// Name of each series, and its bar for every group.
    series: Vec<(&'a str, Vec<f64>)>,
}

/// The drawing, as SVG.
fn draw(bars: &Bars<'_>) -> Result<String, Failure> {
    let heights = bars.series.iter().flat_map(|(_, heights)| heights);
    let most = heights.copied().fold(1.0, f64::max);
    let groups = bars.groups.len();
    let mut text = String::new();
    {
        let root = SVGBackend::with_string(&mut text, SIZE).into_drawing_area();
        root.fill(&WHITE)?;
        let mut chart = ChartBuilder::on(&root)
            .caption(bars.title, ("sans-serif", 20))
            .margin(12)
            .x_label_area_size(48)
            .y_label_area_size(64)
            .build_cartesian_2d(0f64..groups as f64, 0f64..most * 1.25)?;
        chart
            .configure_mesh()
            .disable_x_mesh()
            .x_labels(2 * groups + 1)
            .x_label_formatter(&|place| {
                let is_middle = (place.fract() - 0.5).abs() < 0.01;
                let name = bars.groups.get(*place as usize).filter(|_| is_middle);
                name.map_or(String::new(), |name| (*name).to_owned())
            })
            .y_desc(bars.height)
            .label_style(("sans-serif", 14))
            .draw()?;
        let width = 0.8 / bars.series.len() as f64;
        for (index, ((name, heights), colour)) in bars.series.iter().zip(COLOURS).enumerate() {
            let upright = heights.iter().enumerate().map(|(place, height)| {
                let left = place as f64 + 0.1 + index as f64 * width;
                Rectangle::new([(left, 0.0), (left + width * 0.92, *height)], colour.filled())
            });
            chart.draw_series(upright)?.label(*name).legend(move |(x, y)| {
                Rectangle::new([(x, y - 5), (x + 12, y + 5)], colour.filled())
            });
        }
        legend::draw(&mut chart, SeriesLabelPosition::UpperRight)?;
        root.present()?;
    }
    Ok(text)
}

/// All figures whose medians are present: file names and drawings.
///
/// # Errors
/// Errors of the plotting library.
pub(super) fn all(medians: &BTreeMap<&str, f64>) -> Result<Vec<(&'static str, String)>, Failure> {
    let drawn = [
        ("dsm-locks.svg", locks(medians)),
        ("dsm-managers.svg", managers(medians)),
        ("dsm-water.svg", water(medians)),
        ("dsm-sor.svg", sor(medians)),
    ];
    let measured = drawn.into_iter().filter_map(|(file, bars)| Some((file, bars?)));
    measured.map(|(file, bars)| Ok((file, draw(&bars)?))).collect()
}

type Medians<'a> = BTreeMap<&'a str, f64>;

fn values(medians: &Medians<'_>, names: &[&str]) -> Option<Vec<f64>> {
    names.iter().map(|name| medians.get(name).copied()).collect()
}

/// Figures 1 and 2: each with the old scheme at a node with a manager, as in the paper.
fn locks(medians: &Medians<'_>) -> Option<Bars<'static>> {
    let gains = ["figure-1-worker", "figure-1-other", "figure-2-one", "figure-2-spread"];
    let times =
        ["figure-1-worker-us", "figure-1-other-us", "figure-2-one-us", "figure-2-spread-us"];
    let (gains, times) = (values(medians, &gains)?, values(medians, &times)?);
    let before: Vec<f64> = gains.iter().zip(&times).map(|(gain, time)| gain * time).collect();
    // The first bar of a figure is 1.
    let over = |times: &[f64]| {
        times.iter().enumerate().map(|(place, time)| before[place / 2 * 2] / time).collect()
    };
    Some(Bars {
        title: "Locks: times as fast as the old scheme's first (paper 3, figures 1, 2)",
        height: "speed",
        groups: &["1: worker manages", "1: another manages", "2: one manages", "2: by lock"],
        series: vec![("old scheme", over(&before)), ("new scheme", over(&times))],
    })
}

/// Figure 3.
fn managers(medians: &Medians<'_>) -> Option<Bars<'static>> {
    let of = |names: [&str; 2]| values(medians, &names);
    Some(Bars {
        title: "Page managers: what an increment sends (paper 3, figure 3, table 3)",
        height: "messages, or bytes / 10",
        groups: &["messages", "bytes / 10"],
        series: vec![
            ("one page manager", {
                let sent = of(["table-3-one-messages", "table-3-one-bytes"])?;
                vec![sent[0], sent[1] / 10.0]
            }),
            ("where pages are used", {
                let sent = of(["table-3-spread-messages", "table-3-spread-bytes"])?;
                vec![sent[0], sent[1] / 10.0]
            }),
        ],
    })
}

/// Figure 4.
fn water(medians: &Medians<'_>) -> Option<Bars<'static>> {
    let mut together = values(medians, &["water"])?;
    let mut groups: &[&str] = &["processes"];
    if let Some(hosts) = medians.get("water-hosts") {
        together.push(*hosts);
        groups = &["processes", "hosts"];
    }
    Some(Bars {
        title: "WATER, 1,728 molecules (paper 3, figure 4)",
        height: "times as fast as one",
        groups,
        series: vec![("1 node", vec![1.0; groups.len()]), ("2 nodes", together)],
    })
}

/// Figure 5.
fn sor(medians: &Medians<'_>) -> Option<Bars<'static>> {
    let kinds = |names| values(medians, names);
    let mut ordinary = kinds(&["sor-ordinary", "sor-ordinary-traps"])?;
    let mut single = kinds(&["sor-single", "sor-single-traps"])?;
    let mut groups: &[&str] = &["writes by scan", "writes by traps"];
    if let Some(hosts) = kinds(&["sor-ordinary-hosts", "sor-single-hosts"]) {
        ordinary.push(hosts[0]);
        single.push(hosts[1]);
        groups = &["writes by scan", "writes by traps", "scan, on hosts"];
    }
    Some(Bars {
        title: "SOR 1024 x 1536 on 2 nodes (paper 3, figure 5)",
        height: "times as fast as one",
        groups,
        series: vec![
            ("1 node", vec![1.0; groups.len()]),
            ("ordinary barrier", ordinary),
            ("single-read-write barrier", single),
        ],
    })
}

#[cfg(test)]
mod tests {
    use super::all;
    use std::collections::BTreeMap;

    #[test]
    fn what_was_not_measured_is_not_drawn() {
        let sor = ["sor-ordinary", "sor-ordinary-traps", "sor-single", "sor-single-traps"];
        let mut medians: BTreeMap<&str, f64> = sor.iter().map(|name| (*name, 1.5)).collect();
        let files = |medians: &BTreeMap<&str, f64>| -> Vec<&'static str> {
            all(medians).unwrap().into_iter().map(|(file, _)| file).collect()
        };
        assert_eq!(files(&medians), ["dsm-sor.svg"]);
        medians.remove("sor-single");
        assert!(files(&medians).is_empty());
    }

    #[test]
    fn a_bar_is_drawn_for_each_value() {
        let medians = BTreeMap::from([("water", 0.5), ("water-hosts", 0.25)]);
        let (_, svg) = all(&medians).unwrap().remove(0);
        let bars = |colour: &str| svg.matches(&format!("fill=\"{colour}\"")).count();
        // And one in the legend.
        assert_eq!((bars("#6E6E6E"), bars("#0072B2")), (3, 3), "{svg}");
    }
}
