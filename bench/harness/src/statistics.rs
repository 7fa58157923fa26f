//! Medians with their spread.

use serde_json::{Value, json};

/// The median of some values, the least and the greatest.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// The middle value; the mean of the two middle ones when their number is even.
    pub median: f64,
    /// The least value.
    pub least: f64,
    /// The greatest value.
    pub most: f64,
}

impl Spread {
    /// The spread of `values`, or `None` of none.
    pub fn of(values: &[f64]) -> Option<Self> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (least, most) = (*sorted.first()?, *sorted.last()?);
        let middle = sorted.len() / 2;
        let median = if sorted.len() % 2 == 1 {
            sorted[middle]
        } else {
            f64::midpoint(sorted[middle - 1], sorted[middle])
        };
        Some(Self { median, least, most })
    }

    /// The three values by name.
    pub fn to_json(self) -> Value {
        json!({ "median": self.median, "least": self.least, "most": self.most })
    }
}

#[cfg(test)]
mod tests {
    use super::Spread;

    #[test]
    fn spread_of_an_even_number_of_values_takes_the_mean_of_the_middle_two() {
        let spread = Spread::of(&[4.0, 1.0, 3.0, 2.0]);
        assert_eq!(spread, Some(Spread { median: 2.5, least: 1.0, most: 4.0 }));
    }

    #[test]
    fn nothing_has_no_spread() {
        assert_eq!(Spread::of(&[]), None);
    }
}
