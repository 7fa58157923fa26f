//! Axes of plots: from values to places, and the values at which they are labelled.

/// A horizontal or vertical axis.
#[derive(Debug)]
pub(super) struct Axis {
    least: f64,
    most: f64,
    logarithmic: bool,
    /// The places of the two ends.
    ends: [f64; 2],
}

impl Axis {
    /// An axis for these values, between two places. On a logarithmic axis, values of 0 and less
    /// are at its beginning.
    pub(super) fn new(
        values: impl Iterator<Item = f64> + Clone,
        logarithmic: bool,
        begin: f64,
        end: f64,
    ) -> Self {
        let positive = |value: &f64| value.is_finite() && (!logarithmic || *value > 0.0);
        let least = values.clone().filter(positive).fold(f64::INFINITY, f64::min);
        let most = values.filter(positive).fold(f64::NEG_INFINITY, f64::max);
        let (least, most) = match (least <= most, logarithmic) {
            (false, _) => (1.0, 10.0),
            (true, true) => {
                let below = 10f64.powf(least.log10().floor());
                (below, 10f64.powf(most.log10().ceil()).max(below * 10.0))
            }
            (true, false) => {
                let least = least.min(0.0);
                let step = step(most - least);
                (least, ((most / step).ceil() * step).max(least + step))
            }
        };
        Self { least, most, logarithmic, ends: [begin, end] }
    }

    /// Where a value is.
    pub(super) fn place(&self, value: f64) -> f64 {
        let part = if self.logarithmic {
            (value.max(self.least) / self.least).log10() / (self.most / self.least).log10()
        } else {
            (value - self.least) / (self.most - self.least)
        };
        self.ends[0] + part * (self.ends[1] - self.ends[0])
    }

    /// The labelled values.
    pub(super) fn ticks(&self) -> Vec<(f64, String)> {
        let values: Vec<f64> = if self.logarithmic {
            let decades = (self.most / self.least).log10().round() as i32;
            // At most six labels.
            let apart = (decades / 6 + 1).max(1);
            (0..=decades).step_by(apart as usize).map(|n| self.least * 10f64.powi(n)).collect()
        } else {
            let step = step(self.most - self.least);
            let count = ((self.most - self.least) / step).round() as usize;
            (0..=count).map(|n| self.least + n as f64 * step).collect()
        };
        values.into_iter().map(|value| (value, short(value))).collect()
    }
}

/// A distance of 1, 2 or 5 times a power of ten that divides `range` into at most six parts.
fn step(range: f64) -> f64 {
    let raw = range.max(f64::MIN_POSITIVE) / 6.0;
    let power = 10f64.powf(raw.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().find(|factor| factor * power >= raw * 0.999);
    step.unwrap_or(10.0) * power
}

/// A value with three digits, and a letter for powers of a thousand.
pub(in crate::paper) fn short(value: f64) -> String {
    let (value, letter) = match value.abs() {
        size if size >= 1e9 => (value / 1e9, "G"),
        size if size >= 1e6 => (value / 1e6, "M"),
        size if size >= 1e4 => (value / 1e3, "k"),
        _ => (value, ""),
    };
    let digits = match value.abs() {
        size if size >= 100.0 || size == 0.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 1.0 => 2,
        size => (2.0 - size.log10().floor()).min(9.0) as usize,
    };
    let text = format!("{value:.digits$}");
    let text =
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text}{letter}")
}

#[cfg(test)]
mod tests {
    use super::{Axis, short};

    #[test]
    fn a_linear_axis_begins_at_zero_and_ends_at_a_round_number() {
        let axis = Axis::new([3.0, 47.0].into_iter(), false, 0.0, 100.0);
        assert_eq!(axis.ticks().last().unwrap().1, "50");
        assert_eq!([axis.place(0.0), axis.place(25.0), axis.place(50.0)], [0.0, 50.0, 100.0]);
    }

    #[test]
    fn a_logarithmic_axis_covers_whole_decades() {
        let axis = Axis::new([3.0, 400.0].into_iter(), true, 0.0, 3.0);
        let labels: Vec<_> = axis.ticks().into_iter().map(|tick| tick.1).collect();
        assert_eq!(labels, ["1", "10", "100", "1000"]);
        assert!((axis.place(10.0) - 1.0).abs() < 1e-9);
        assert_eq!(axis.place(0.0), 0.0);
    }

    #[test]
    fn no_values_still_make_an_axis() {
        assert!(Axis::new(core::iter::empty(), true, 0.0, 1.0).place(5.0).is_finite());
        assert!(Axis::new([0.0].into_iter(), false, 0.0, 1.0).place(0.0).is_finite());
    }

    #[test]
    fn numbers_have_three_digits() {
        let shown = [0.0, 0.0123, 1.5, 12.25, 123.4, 12_345.0, 4.2e6].map(short);
        assert_eq!(shown, ["0", "0.0123", "1.5", "12.2", "123", "12.3k", "4.2M"]);
    }
}
