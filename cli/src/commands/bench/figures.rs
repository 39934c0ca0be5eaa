//! Figures: the measurements of each round, and their summary over all rounds.

use serde::{Serialize, Serializer};

/// The unit of a figure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// Things in a second.
    PerSecond(&'static str),
    /// A time, in milliseconds.
    Milliseconds,
    /// A number of something else.
    Count(&'static str),
}

impl Unit {
    /// Returns the unit as it is shown.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::PerSecond(name) | Self::Count(name) => name,
            Self::Milliseconds => "ms",
        }
    }
}

/// The median of the rounds, with the lowest and the highest of them.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct Spread {
    /// The median.
    #[serde(serialize_with = "rounded")]
    pub median: f64,
    /// The lowest round.
    #[serde(serialize_with = "rounded")]
    pub low: f64,
    /// The highest round.
    #[serde(serialize_with = "rounded")]
    pub high: f64,
}

impl Spread {
    fn over(values: impl Iterator<Item = f64>) -> Option<Self> {
        let mut sorted: Vec<f64> = values.collect();
        sorted.sort_by(f64::total_cmp);
        let (low, high) = (*sorted.first()?, *sorted.last()?);
        Some(Self { median: median(&sorted), low, high })
    }
}

/// Returns the median of sorted values; 0 of nothing.
#[must_use]
pub fn median(sorted: &[f64]) -> f64 {
    let at = |index: usize| sorted.get(index).copied().unwrap_or_default();
    match sorted.len() {
        0 => 0.0,
        n if n % 2 == 1 => at(n / 2),
        n => f64::midpoint(at(n / 2 - 1), at(n / 2)),
    }
}

/// Rounds to four significant digits, which is all that such a measurement gives.
fn rounded<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(significant(*value))
}

fn significant(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let digits = 3 - value.abs().log10().floor() as i32;
    let scale = 10f64.powi(digits.clamp(-12, 12));
    (value * scale).round() / scale
}

/// The aim of a figure, and its result.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Aim {
    /// The aim in words.
    pub aim: &'static str,
    /// True if this run meets it.
    pub met: bool,
}

/// One line of the report.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Figure {
    /// The name.
    pub name: String,
    /// The unit.
    pub unit: &'static str,
    /// Over all rounds.
    #[serde(flatten)]
    pub spread: Spread,
    /// Each round.
    pub rounds: Vec<f64>,
    /// Rates: done in the time of one `fdatasync` of this disk. Times: how many `fdatasync` one after another take as
    /// long. Missing where the disk has no part in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_fdatasync: Option<f64>,
    /// The same work done naively, in the same rounds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub naive: Option<Spread>,
    /// The median over the rounds of this figure divided by the naive one of the same round.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub times_naive: Option<f64>,
    /// The aim.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub aim: Option<Aim>,
}

struct Round {
    value: f64,
    naive: Option<f64>,
    fdatasync_per_s: Option<f64>,
}

/// A figure in the making.
pub struct Series {
    name: String,
    unit: Unit,
    rounds: Vec<Round>,
}

impl Series {
    /// Begins a figure.
    #[must_use]
    pub fn new(name: impl Into<String>, unit: Unit) -> Self {
        Self { name: name.into(), unit, rounds: Vec::new() }
    }

    /// Adds a round in which the disk did `fdatasync_per_s`.
    pub fn round(&mut self, value: f64, fdatasync_per_s: f64) {
        self.rounds.push(Round { value, naive: None, fdatasync_per_s: Some(fdatasync_per_s) });
    }

    /// Adds a round with the same work done naively.
    pub fn beside(&mut self, value: f64, naive: f64, fdatasync_per_s: f64) {
        self.rounds.push(Round { value, naive: Some(naive), fdatasync_per_s: Some(fdatasync_per_s) });
    }

    /// Adds a round in which the disk had no part.
    pub fn in_memory(&mut self, value: f64) {
        self.rounds.push(Round { value, naive: None, fdatasync_per_s: None });
    }

    /// Adds a round in which the disk had no part, with the same work done naively.
    pub fn in_memory_beside(&mut self, value: f64, naive: f64) {
        self.rounds.push(Round { value, naive: Some(naive), fdatasync_per_s: None });
    }

    /// Returns the figure over all rounds.
    #[must_use]
    pub fn figure(&self) -> Figure {
        let of = |part: &dyn Fn(&Round) -> Option<f64>| Spread::over(self.rounds.iter().filter_map(part));
        let unit = self.unit;
        let per_fdatasync = of(&|round| {
            let disk = round.fdatasync_per_s.filter(|disk| *disk > 0.0)?;
            match unit {
                Unit::PerSecond(_) => Some(round.value / disk),
                Unit::Milliseconds => Some(round.value * disk / 1e3),
                Unit::Count(_) => None,
            }
        });
        let times = of(&|round| round.naive.filter(|naive| *naive > 0.0).map(|naive| round.value / naive));
        Figure {
            name: self.name.clone(),
            unit: unit.as_str(),
            spread: of(&|round| Some(round.value)).unwrap_or_default(),
            rounds: self.rounds.iter().map(|round| significant(round.value)).collect(),
            per_fdatasync: per_fdatasync.map(|spread| significant(spread.median)),
            naive: of(&|round| round.naive),
            times_naive: times.map(|spread| significant(spread.median)),
            aim: None,
        }
    }
}

impl Figure {
    /// Sets the aim.
    #[must_use]
    pub fn aiming(self, aim: &'static str, holds: impl FnOnce(&Self) -> bool) -> Self {
        let met = holds(&self);
        Self { aim: Some(Aim { aim, met }), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ratio_is_taken_within_each_round() {
        let mut series = Series::new("turns", Unit::PerSecond("turns/s"));
        // The disk has two regimes: in the second round everything was ten times slower.
        series.beside(5000.0, 500.0, 4000.0);
        series.beside(450.0, 50.0, 400.0);
        series.beside(5500.0, 500.0, 4000.0);
        let figure = series.figure();
        assert_eq!((figure.spread.low, figure.spread.median, figure.spread.high), (450.0, 5000.0, 5500.0));
        assert_eq!((figure.times_naive, figure.per_fdatasync), (Some(10.0), Some(1.25)));
        assert!(figure.aiming("≥ 10 × naive", |f| f.times_naive >= Some(10.0)).aim.unwrap().met);
    }

    #[test]
    fn a_time_is_reported_in_waits_for_the_disk() {
        let mut series = Series::new("start", Unit::Milliseconds);
        series.round(1.5, 2000.0);
        assert_eq!(series.figure().per_fdatasync, Some(3.0));
    }

    #[test]
    fn medians_and_digits() {
        assert_eq!((median(&[1.0, 2.0, 9.0]), median(&[1.0, 2.0]), median(&[])), (2.0, 1.5, 0.0));
        assert_eq!((significant(12345.6), significant(0.012_345), significant(0.0)), (12350.0, 0.01235, 0.0));
    }
}
