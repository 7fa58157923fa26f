//! The box that names a plot's series, the same in every plot.

use plotters::coord::CoordTranslate;
use plotters::prelude::*;

/// Draws it where it covers least of the plot.
///
/// # Errors
/// Errors of the plotting library.
pub fn draw<'a, C: CoordTranslate>(
    chart: &mut ChartContext<'a, SVGBackend<'a>, C>,
    position: SeriesLabelPosition,
) -> Result<(), Box<dyn core::error::Error>> {
    chart
        .configure_series_labels()
        .position(position)
        .background_style(WHITE.mix(0.85))
        .border_style(BLACK.mix(0.3))
        .label_font(("sans-serif", 14))
        .draw()?;
    Ok(())
}
