//! Results of the rounds: values, ratios to Go and marks, as numbers.

use crate::statistics::Spread;
use crate::threads::measure::Series;
use crate::threads::system::{Built, KYOCHO_ON_TWO, System};
use crate::threads::workload::{Better, SECOND_FIGURES, SecondFigure, Target, Workload};
use serde_json::{Map, Value, json};

/// The largest ratio that counts as no difference.
const EQUAL: f64 = 1.3;

/// All results, with the machine.
#[derive(Debug)]
pub struct Report {
    /// The systems, in the order of the columns, with their versions.
    pub systems: Vec<(System, String)>,
    /// The workloads, in the order of the rows.
    pub rows: Vec<Row>,
    /// How often each was run.
    pub rounds: usize,
    /// The systems that could not be built, and why.
    pub skipped: Vec<String>,
    /// Processor, number of them, kernel, day.
    pub host: String,
}

/// One workload on all systems.
#[derive(Debug)]
pub struct Row {
    /// The workload.
    pub work: Workload,
    /// The unit of its values.
    pub unit: String,
    /// One entry a system.
    pub cells: Vec<Cell>,
}

/// One workload on one system.
#[derive(Debug)]
pub enum Cell {
    /// It ran, and its check passed.
    Measured(Measured),
    /// The system cannot do this, by design.
    Unsupported(String),
    /// It failed; how.
    Failed(String),
}

/// The figures of one workload on one system.
#[derive(Debug)]
pub struct Measured {
    /// The values, round by round.
    pub values: Vec<f64>,
    /// Their spread.
    pub value: Spread,
    /// The value over Go's in the same round.
    pub ratio: Option<Spread>,
    /// The result line of the last round, with the other figures.
    pub lines: Vec<Value>,
}

/// A mark and what was measured against it.
#[derive(Debug)]
pub struct Verdict {
    /// The mark.
    pub mark: String,
    /// What was.
    pub reached: String,
    /// Whether the median meets the mark.
    pub met: bool,
}

impl Report {
    /// Puts the rounds together.
    pub fn new(
        systems: &[Built],
        workloads: &[Workload],
        series: Vec<Vec<Series>>,
        rounds: usize,
        skipped: Vec<String>,
        host: String,
    ) -> Self {
        let go = systems.iter().position(|built| built.system.name == "go");
        let values: Vec<Vec<Option<Vec<f64>>>> =
            series.iter().map(|row| row.iter().map(values_of).collect()).collect();
        let baseline = |work: &Workload| {
            let row = workloads.iter().position(|other| {
                other.bench == work.baseline() && other.arguments == work.arguments
            })?;
            values[row][go?].clone()
        };
        let rows = workloads
            .iter()
            .zip(series)
            .map(|(work, row)| Row::new(work.clone(), row, baseline(work).as_deref()))
            .collect();
        let systems = systems.iter().map(|built| (built.system, built.version.clone())).collect();
        Self { systems, rows, rounds, skipped, host }
    }

    /// Kyocho's results compared with its marks.
    pub fn verdicts(&self) -> Vec<(String, Verdict)> {
        let Some(kyocho) = self.systems.iter().position(|(system, _)| system.name == "kyocho")
        else {
            return Vec::new();
        };
        let mut verdicts = Vec::new();
        for row in &self.rows {
            let Cell::Measured(measured) = &row.cells[kyocho] else { continue };
            if let Some(verdict) = row.work.target.and_then(|target| measured.against(target, row))
            {
                verdicts.push((row.work.title.clone(), verdict));
            }
            let figures = SECOND_FIGURES.iter().filter(|figure| figure.bench == row.work.bench);
            verdicts.extend(figures.filter_map(|figure| measured.never_over(figure)));
        }
        verdicts.extend(self.rows.iter().filter_map(|row| self.two_against_one(row)));
        verdicts
    }

    /// The ratio of a workload's cost on two virtual processors to that on one. It must not exceed
    /// 1, where ratios below [`EQUAL`] count as 1.
    fn two_against_one(&self, row: &Row) -> Option<(String, Verdict)> {
        let median = |name| {
            let at = self.systems.iter().position(|(system, _)| system.name == name)?;
            let Cell::Measured(measured) = &row.cells[at] else { return None };
            Some(measured.value.median)
        };
        let (one, two) = (median("kyocho")?, median(KYOCHO_ON_TWO)?);
        let cost = if row.work.better == Better::Lower { two / one } else { one / two };
        let mark = format!("< {EQUAL} of one in cost");
        let verdict = Verdict { mark, reached: format!("{cost:.2} of one"), met: cost < EQUAL };
        Some((format!("{}, two virtual processors", row.work.title), verdict))
    }

    /// The whole report as JSON.
    pub fn to_json(&self) -> Value {
        let systems: Vec<_> = self
            .systems
            .iter()
            .map(|(system, version)| json!({ "name": system.name, "version": version }))
            .collect();
        let targets: Vec<_> = self
            .verdicts()
            .into_iter()
            .map(|(what, verdict)| {
                json!({ "what": what, "target": verdict.mark, "measured": verdict.reached,
                    "met": verdict.met })
            })
            .collect();
        let rows: Vec<_> = self.rows.iter().map(|row| row.to_json(&self.systems)).collect();
        json!({ "host": self.host, "rounds": self.rounds, "systems": systems, "skipped": self.skipped,
            "workloads": rows,
            "targets": targets })
    }
}

impl Row {
    fn new(work: Workload, series: Vec<Series>, baseline: Option<&[f64]>) -> Self {
        let unit = series.iter().find_map(|series| match series {
            Series::Lines(lines) => lines.first()?.get("unit")?.as_str().map(str::to_owned),
            _ => None,
        });
        let cells = series.into_iter().map(|series| Cell::new(series, baseline)).collect();
        Self { work, unit: unit.unwrap_or_default(), cells }
    }

    fn to_json(&self, systems: &[(System, String)]) -> Value {
        let cells: Map<_, _> = systems
            .iter()
            .zip(&self.cells)
            .map(|((system, _), cell)| (system.name.to_owned(), cell.to_json()))
            .collect();
        let better = match self.work.better {
            Better::Lower => "lower",
            Better::Higher => "higher",
        };
        json!({ "bench": self.work.bench, "args": self.work.arguments, "title": self.work.title,
            "unit": self.unit, "better": better, "systems": cells })
    }
}

impl Cell {
    fn new(series: Series, baseline: Option<&[f64]>) -> Self {
        let values = values_of(&series);
        match (series, values) {
            (Series::Unsupported(why), _) => Self::Unsupported(why),
            (Series::Failed(why), _) => Self::Failed(why),
            (Series::Lines(lines), Some(values)) => {
                let Some(value) = Spread::of(&values) else {
                    return Self::Failed("no round was run".into());
                };
                let ratios = |go: &[f64]| -> Vec<f64> {
                    values.iter().zip(go).map(|(value, go)| value / go).collect()
                };
                let ratio = baseline.and_then(|go| Spread::of(&ratios(go)));
                Self::Measured(Measured { values, value, ratio, lines })
            }
            (Series::Lines(_), None) => Self::Failed("a line without a value".into()),
        }
    }

    fn to_json(&self) -> Value {
        match self {
            Self::Unsupported(why) => json!({ "unsupported": why }),
            Self::Failed(why) => json!({ "failed": why }),
            Self::Measured(measured) => {
                json!({ "values": measured.values, "value": spread_json(&measured.value),
                    "ratio_to_go": measured.ratio.as_ref().map(spread_json),
                    "lines": measured.lines })
            }
        }
    }
}

impl Measured {
    /// The spread of a second figure over the rounds.
    pub fn second(&self, figure: &SecondFigure) -> Option<Spread> {
        let values: Option<Vec<f64>> =
            self.lines.iter().map(|line| line.get(figure.field)?.as_f64()).collect();
        Spread::of(&values?)
    }

    fn never_over(&self, figure: &SecondFigure) -> Option<(String, Verdict)> {
        let (mark, spread) = (figure.target?, self.second(figure)?);
        let verdict = Verdict {
            mark: format!("never over {mark}"),
            reached: format!("{:.3} at most", spread.most),
            met: spread.most <= mark,
        };
        Some((format!("{}: {}", figure.bench, figure.title), verdict))
    }

    fn against(&self, target: Target, row: &Row) -> Option<Verdict> {
        let (figure, mark, sign) = match (target, row.work.better) {
            (Target::AtMost(mark), _) => (self.value.median, mark, "<="),
            (Target::RatioToGo(mark), Better::Lower) => (self.ratio?.median, mark, "<="),
            (Target::RatioToGo(mark), Better::Higher) => (self.ratio?.median, mark, ">="),
        };
        let met = if sign == "<=" { figure <= mark } else { figure >= mark };
        let of = match target {
            Target::AtMost(_) => row.unit.clone(),
            Target::RatioToGo(_) => "of Go".into(),
        };
        let mark = format!("{sign} {mark} {of}");
        Some(Verdict { mark, reached: format!("{figure:.3} {of}"), met })
    }
}

fn values_of(series: &Series) -> Option<Vec<f64>> {
    let Series::Lines(lines) = series else { return None };
    lines.iter().map(|line| line.get("value")?.as_f64()).collect()
}

fn spread_json(spread: &Spread) -> Value {
    json!({ "median": spread.median, "least": spread.least, "most": spread.most })
}
