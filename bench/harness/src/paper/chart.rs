//! Plots as SVG elements for the page, all from one template.
//!
//! Colours come from the page's style sheet, so plots follow its light and dark themes. Series also
//! differ in dashes, marks and hatching, so colours are not needed to tell them apart. A plot is
//! 480 units wide, and readable at 400 pixels.

pub(super) mod axis;

use super::escape::escape;
use super::figure::{Bars, Chart, Lines, Matrix, Origin};
use axis::Axis;
use core::fmt::Write;

/// Size of a plot, and of the part inside the axes.
const WIDTH: f64 = 480.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 62.0;
const RIGHT: f64 = WIDTH - 10.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = HEIGHT - 52.0;
/// Styles of series, in the style sheet: `s0` to `s6`.
const STYLES: usize = 7;

/// The plot as a figure with its title and legend.
pub fn draw(chart: &Chart) -> String {
    let (title, drawing, legend) = match chart {
        Chart::Lines(lines) => (&lines.title, draw_lines(lines), legend_of_lines(lines)),
        Chart::Bars(bars) => (&bars.title, draw_bars(bars), legend_of_bars(bars)),
        Chart::Matrix(matrix) => (&matrix.title, draw_matrix(matrix), String::new()),
    };
    let title = escape(title);
    format!(
        "<figure class=\"chart\"><figcaption>{title}</figcaption>\
         <svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{title}\">{drawing}</svg>\
         {legend}</figure>\n"
    )
}

fn draw_lines(lines: &Lines) -> String {
    let points = || lines.series.iter().flat_map(|series| &series.points);
    let along = Axis::new(points().map(|point| point.0), lines.logarithmic[0], LEFT, RIGHT);
    let up = Axis::new(points().map(|point| point.1), lines.logarithmic[1], BOTTOM, TOP);
    let mut text = frame(&up, &lines.axes[1]);
    for (value, label) in along.ticks() {
        let x = along.place(value);
        put(
            &mut text,
            format_args!(
                "<line class=\"grid\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{TOP}\" y2=\"{BOTTOM}\"/>\
             <text class=\"tick\" x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{label}</text>",
                BOTTOM + 16.0
            ),
        );
    }
    label_below(&mut text, &lines.axes[0]);
    for (index, series) in lines.series.iter().enumerate() {
        let style = index % STYLES;
        let at: Vec<_> =
            series.points.iter().map(|point| (along.place(point.0), up.place(point.1))).collect();
        let path: Vec<_> = at.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        put(
            &mut text,
            format_args!("<polyline class=\"line s{style}\" points=\"{}\"/>", path.join(" ")),
        );
        for ((x, y), point) in at.iter().zip(&series.points) {
            put(
                &mut text,
                format_args!(
                    "<g><title>{}: {}, {}</title>{}</g>",
                    escape(&series.name),
                    axis::short(point.0),
                    axis::short(point.1),
                    mark(style, *x, *y)
                ),
            );
        }
    }
    text
}

fn draw_bars(bars: &Bars) -> String {
    let heights = bars.series.iter().flat_map(|series| series.2.iter().copied().flatten());
    // Bars stand on zero; on a logarithmic axis on the power of ten below the least.
    let floor = (!bars.logarithmic).then_some(0.0);
    let up = Axis::new(heights.chain(floor), bars.logarithmic, BOTTOM, TOP);
    let mut text = frame(&up, &bars.height);
    let group_width = (RIGHT - LEFT) / bars.groups.len().max(1) as f64;
    let width = group_width * 0.84 / bars.series.len().max(1) as f64;
    // Long names of many groups would run into each other.
    let is_tilted = bars.groups.iter().any(|name| name.chars().count() as f64 * 6.2 > group_width);
    for (place, name) in bars.groups.iter().enumerate() {
        let middle = LEFT + (place as f64 + 0.5) * group_width;
        let (x, y, turn) = if is_tilted {
            (
                middle + 4.0,
                BOTTOM + 12.0,
                format!(" transform=\"rotate(-32 {:.1} {:.1})\"", middle + 4.0, BOTTOM + 12.0),
            )
        } else {
            (middle, BOTTOM + 16.0, String::new())
        };
        let anchor = if is_tilted { "end" } else { "middle" };
        put(
            &mut text,
            format_args!(
                "<text class=\"tick\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\"{turn}>{}</text>",
                escape(name)
            ),
        );
        for (index, (series, origin, heights)) in bars.series.iter().enumerate() {
            let Some(height) = heights.get(place).copied().flatten() else { continue };
            let left = middle - group_width * 0.42 + index as f64 * width;
            let top = up.place(height);
            put(
                &mut text,
                format_args!(
                    "<g><title>{}, {}: {}</title><rect class=\"bar {} s{}\" x=\"{left:.1}\" y=\"{top:.1}\" \
                 width=\"{:.1}\" height=\"{:.1}\"/></g>",
                    escape(series),
                    escape(name),
                    axis::short(height),
                    class_of(*origin),
                    index % STYLES,
                    width * 0.92,
                    (BOTTOM - top).max(0.5)
                ),
            );
        }
    }
    text
}

fn draw_matrix(matrix: &Matrix) -> String {
    let count = matrix.names.len().max(1);
    let side = (BOTTOM - TOP - 14.0) / count as f64;
    let left = LEFT + 40.0;
    let most = matrix.values.iter().flatten().copied().fold(1.0, f64::max);
    let mut text = String::new();
    for (row, values) in matrix.values.iter().enumerate() {
        let y = TOP + 14.0 + row as f64 * side;
        let name = matrix.names.get(row).map_or("", String::as_str);
        put(
            &mut text,
            format_args!(
                "<text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>\
             <text class=\"tick\" x=\"{:.1}\" y=\"{TOP}\" text-anchor=\"middle\">{}</text>",
                left - 6.0,
                y + side * 0.65,
                escape(name),
                left + (row as f64 + 0.5) * side,
                escape(name)
            ),
        );
        for (column, value) in values.iter().enumerate() {
            let x = left + column as f64 * side;
            let receiver = matrix.names.get(column).map_or("", String::as_str);
            put(
                &mut text,
                format_args!(
                    "<g><title>{} to {}: {} {}</title><rect class=\"cell\" x=\"{x:.1}\" y=\"{y:.1}\" \
                 width=\"{side:.1}\" height=\"{side:.1}\" fill-opacity=\"{:.3}\"/></g>",
                    escape(name),
                    escape(receiver),
                    axis::short(*value),
                    matrix.unit,
                    value / most
                ),
            );
        }
    }
    put(
        &mut text,
        format_args!(
            "<text class=\"tick\" x=\"{left}\" y=\"{:.1}\">rows send, columns receive; black: {} {}</text>",
            HEIGHT - 16.0,
            axis::short(most),
            matrix.unit
        ),
    );
    text
}

/// Horizontal lines, their labels, and the label of the vertical axis.
fn frame(up: &Axis, label: &str) -> String {
    let mut text = String::new();
    for (value, label) in up.ticks() {
        let y = up.place(value);
        put(
            &mut text,
            format_args!(
                "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{RIGHT}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>\
             <text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{label}</text>",
                LEFT - 6.0,
                y + 4.0
            ),
        );
    }
    put(
        &mut text,
        format_args!(
            "<line class=\"axis\" x1=\"{LEFT}\" x2=\"{RIGHT}\" y1=\"{BOTTOM}\" y2=\"{BOTTOM}\"/>\
         <text class=\"label\" x=\"12\" y=\"{0:.1}\" text-anchor=\"middle\" \
         transform=\"rotate(-90 12 {0:.1})\">{1}</text>",
            f64::midpoint(TOP, BOTTOM),
            escape(label)
        ),
    );
    text
}

fn label_below(text: &mut String, label: &str) {
    put(
        text,
        format_args!(
            "<text class=\"label\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            f64::midpoint(LEFT, RIGHT),
            HEIGHT - 12.0,
            escape(label)
        ),
    );
}

/// The mark of a point, a different one for each style.
fn mark(style: usize, x: f64, y: f64) -> String {
    let polygon = |corners: &[(f64, f64)]| {
        let corners: Vec<_> =
            corners.iter().map(|(dx, dy)| format!("{:.1},{:.1}", x + dx, y + dy)).collect();
        format!("<polygon class=\"mark s{style}\" points=\"{}\"/>", corners.join(" "))
    };
    match style % 4 {
        0 => format!("<circle class=\"mark s{style}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.4\"/>"),
        1 => polygon(&[(-3.2, -3.2), (3.2, -3.2), (3.2, 3.2), (-3.2, 3.2)]),
        2 => polygon(&[(0.0, -4.2), (4.0, 3.0), (-4.0, 3.0)]),
        _ => polygon(&[(0.0, -4.4), (4.4, 0.0), (0.0, 4.4), (-4.4, 0.0)]),
    }
}

fn class_of(origin: Origin) -> &'static str {
    match origin {
        Origin::Paper => "paper",
        Origin::Here => "here",
    }
}

fn legend_of_lines(lines: &Lines) -> String {
    let samples = lines.series.iter().enumerate().map(|(index, series)| {
        let style = index % STYLES;
        let sample = format!(
            "<line class=\"line s{style}\" x1=\"0\" x2=\"28\" y1=\"7\" y2=\"7\"/>{}",
            mark(style, 14.0, 7.0)
        );
        (sample, series.name.as_str())
    });
    legend(samples)
}

fn legend_of_bars(bars: &Bars) -> String {
    let samples = bars.series.iter().enumerate().map(|(index, (name, origin, _))| {
        let (class, style) = (class_of(*origin), index % STYLES);
        let sample = format!(
            "<rect class=\"bar {class} s{style}\" x=\"6\" y=\"1\" width=\"16\" height=\"12\"/>"
        );
        (sample, name.as_str())
    });
    legend(samples)
}

fn legend<'a>(samples: impl Iterator<Item = (String, &'a str)>) -> String {
    let lines: String = samples
        .map(|(sample, name)| {
            format!(
                "<li><svg viewBox=\"0 0 28 14\" aria-hidden=\"true\">{sample}</svg>{}</li>",
                escape(name)
            )
        })
        .collect();
    format!("<ul class=\"legend\">{lines}</ul>")
}

fn put(text: &mut String, what: core::fmt::Arguments<'_>) {
    text.write_fmt(what).expect("a string takes any text");
}

#[cfg(test)]
mod tests {
    use super::draw;
    use crate::paper::figure::{Bars, Chart, Lines, Matrix, Origin, Series};

    fn count(text: &str, what: &str) -> usize {
        text.matches(what).count()
    }

    #[test]
    fn every_point_has_a_mark_and_every_series_a_line_in_the_legend() {
        let series = |name: &str| Series {
            name: name.into(),
            points: vec![(1.0, 10.0), (10.0, 1000.0), (100.0, 20.0)],
        };
        let text = draw(&Chart::Lines(Lines {
            title: "a < b".into(),
            axes: ["x".into(), "y".into()],
            logarithmic: [true, true],
            series: vec![series("one"), series("two")],
        }));
        assert_eq!(count(&text, "<polyline"), 2);
        assert_eq!(count(&text, "<title>"), 6);
        assert_eq!(count(&text, "<li>"), 2);
        assert!(text.contains("a &lt; b") && !text.contains("NaN"), "{text}");
    }

    #[test]
    fn a_missing_bar_is_left_out() {
        let text = draw(&Chart::Bars(Bars {
            title: "bars".into(),
            height: "ns".into(),
            logarithmic: false,
            groups: vec!["a".into(), "b".into()],
            series: vec![("published".into(), Origin::Paper, vec![Some(3.0), None])],
        }));
        assert_eq!(count(&text, "<title>"), 1);
        assert!(text.contains("paper s0") && !text.contains("NaN"), "{text}");
    }

    #[test]
    fn a_matrix_has_a_square_for_each_pair() {
        let text = draw(&Chart::Matrix(Matrix {
            title: "pairs".into(),
            names: vec!["1".into(), "2".into()],
            unit: "B",
            values: vec![vec![0.0, 5.0], vec![6.0, 0.0]],
        }));
        assert_eq!(count(&text, "class=\"cell\""), 4);
    }
}
