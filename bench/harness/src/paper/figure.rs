//! What a table or figure of a paper becomes: published and measured values side by side.

use crate::statistics::Spread;

/// The content of one entry of the page.
#[derive(Debug, Default, Clone)]
pub struct Figure {
    /// Ratios that the paper argues from.
    pub claims: Vec<Claim>,
    /// Tables, in the order of the page.
    pub tables: Vec<Table>,
    /// Plots, before the tables.
    pub charts: Vec<Chart>,
    /// What could not be measured or is different here, in whole sentences.
    pub notes: Vec<String>,
}

/// A ratio that the paper argues from, beside the one measured here.
#[derive(Debug, Clone)]
pub struct Claim {
    /// What is divided by what.
    pub what: String,
    /// The published ratio.
    pub published: Published,
    /// The measured ratio, or the reason why there is none.
    pub measured: Result<Spread, String>,
}

/// A published value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Published {
    /// Printed in the text.
    Exactly(f64),
    /// The text gives a lower bound.
    AtLeast(f64),
    /// The text gives a range.
    Between(f64, f64),
    /// The text says it in words.
    Words(&'static str),
    /// The figure is a picture without numbers, and the text has none.
    Picture,
}

/// Whether a measured ratio agrees with the published one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It is as large as published, or larger.
    Holds,
    /// It points in the same direction, but is smaller.
    Weaker,
    /// It points in the other direction.
    Reversed,
    /// There is nothing to compare.
    Open,
}

/// A table; its first column has the names of the rows.
#[derive(Debug, Clone)]
pub struct Table {
    /// Its caption.
    pub caption: String,
    /// The heads of the columns after the first.
    pub columns: Vec<String>,
    /// The rows: a name, and a cell for each column.
    pub rows: Vec<(String, Vec<Cell>)>,
}

/// A cell of a table.
#[derive(Debug, Clone)]
pub enum Cell {
    /// A published value and its unit.
    Published(f64, &'static str),
    /// A measured value and its unit.
    Measured(Spread, &'static str),
    /// A number that is counted or computed, and its unit.
    Counted(f64, &'static str),
    /// Words.
    Text(String),
    /// Not measured or not published.
    None,
}

/// A plot.
#[derive(Debug, Clone)]
pub enum Chart {
    /// Lines over a horizontal axis of numbers.
    Lines(Lines),
    /// Bars in groups.
    Bars(Bars),
    /// Squares as dark as their values are large.
    Matrix(Matrix),
}

/// Lines over a horizontal axis of numbers.
#[derive(Debug, Clone)]
pub struct Lines {
    /// Title, and description for readers who do not see it.
    pub title: String,
    /// Labels of the axes.
    pub axes: [String; 2],
    /// Whether the axes are logarithmic.
    pub logarithmic: [bool; 2],
    /// The lines.
    pub series: Vec<Series>,
}

/// A line: points in ascending order.
#[derive(Debug, Clone)]
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// Its points.
    pub points: Vec<(f64, f64)>,
}

/// Bars in groups. A bar can be missing.
#[derive(Debug, Clone)]
pub struct Bars {
    /// Title, and description for readers who do not see it.
    pub title: String,
    /// Label of the height.
    pub height: String,
    /// Whether the heights are logarithmic.
    pub logarithmic: bool,
    /// Names of the groups.
    pub groups: Vec<String>,
    /// Each series: its name, whether it is published, and a bar for each group.
    pub series: Vec<(String, Origin, Vec<Option<f64>>)>,
}

/// Where values come from. Published bars are hollow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The paper.
    Paper,
    /// This machine.
    Here,
}

/// A square for each pair of nodes.
#[derive(Debug, Clone)]
pub struct Matrix {
    /// Title, and description for readers who do not see it.
    pub title: String,
    /// Names of the rows (senders) and columns (receivers).
    pub names: Vec<String>,
    /// Unit of the values.
    pub unit: &'static str,
    /// The values, row by row.
    pub values: Vec<Vec<f64>>,
}

impl Claim {
    /// Compares the measured ratio with the published one. A tenth less counts as equal, because
    /// published values are rounded. A ratio that is nearly 1 points in no direction.
    pub fn verdict(&self) -> Verdict {
        const ROUNDED: f64 = 0.9;
        const NEARLY_ONE: f64 = 1.3;
        let (Ok(measured), Some(published)) = (&self.measured, self.published.least()) else {
            return Verdict::Open;
        };
        if measured.median >= published * ROUNDED {
            Verdict::Holds
        } else if published < 1.0 || measured.median > 1.0 / NEARLY_ONE {
            Verdict::Weaker
        } else {
            Verdict::Reversed
        }
    }
}

impl Published {
    /// The least value that agrees with what was published.
    pub fn least(&self) -> Option<f64> {
        match *self {
            Self::Exactly(value) | Self::AtLeast(value) | Self::Between(value, _) => Some(value),
            Self::Words(_) | Self::Picture => None,
        }
    }
}

impl Figure {
    /// An entry with nothing but the reason why it could not be measured.
    pub fn missing(why: String) -> Self {
        Self { notes: vec![why], ..Self::default() }
    }

    /// Whether some value was measured or counted here.
    pub fn has_values(&self) -> bool {
        let is_ours = |cell: &Cell| matches!(cell, Cell::Measured(..) | Cell::Counted(..));
        self.claims.iter().any(|claim| claim.measured.is_ok())
            || self
                .tables
                .iter()
                .flat_map(|table| &table.rows)
                .any(|(_, row)| row.iter().any(is_ours))
    }
}

#[cfg(test)]
mod tests {
    use super::{Claim, Published, Verdict};
    use crate::statistics::Spread;

    fn verdict(published: Published, measured: Result<f64, &str>) -> Verdict {
        let measured = measured.map_err(str::to_owned).map(|value| Spread::of(&[value]).unwrap());
        Claim { what: String::new(), published, measured }.verdict()
    }

    #[test]
    fn a_ratio_holds_up_to_rounding_and_is_reversed_below_one() {
        assert_eq!(verdict(Published::Exactly(4.2), Ok(4.0)), Verdict::Holds);
        assert_eq!(verdict(Published::AtLeast(7.0), Ok(100.0)), Verdict::Holds);
        assert_eq!(verdict(Published::Between(1.6, 2.2), Ok(1.3)), Verdict::Weaker);
        assert_eq!(verdict(Published::AtLeast(1.9), Ok(0.5)), Verdict::Reversed);
        assert_eq!(verdict(Published::Exactly(0.8), Ok(0.3)), Verdict::Weaker);
        assert_eq!(verdict(Published::Exactly(1.3), Ok(0.95)), Verdict::Weaker);
    }

    #[test]
    fn without_a_value_on_either_side_nothing_is_said() {
        assert_eq!(verdict(Published::Picture, Ok(4.0)), Verdict::Open);
        assert_eq!(verdict(Published::Exactly(2.0), Err("no rights")), Verdict::Open);
    }
}
