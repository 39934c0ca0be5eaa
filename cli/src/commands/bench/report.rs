//! The report: a table for people, JSON for programs.

use super::figures::Figure;
use crate::output::{Format, Output, table};
use serde::Serialize;
use std::io;
use turnstone_benches::disk::Disk;
use turnstone_benches::machine::Machine;

/// All measurements, and their machine.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Report {
    /// The machine.
    pub machine: Machine,
    /// The store.
    pub store: String,
    /// How often each figure was measured.
    pub rounds: u32,
    /// The subjects, in order.
    pub subjects: Vec<Section>,
}

/// One subject.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Section {
    /// Its name on the command line.
    pub subject: &'static str,
    /// The description of the subject.
    pub what: &'static str,
    /// The meaning of "naive".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub naive: Option<&'static str>,
    /// The disk, just before.
    pub disk: Disk,
    /// The figures.
    pub figures: Vec<Figure>,
}

impl Report {
    /// Prints it.
    ///
    /// # Errors
    /// Standard output cannot be written.
    pub fn print(&self, output: &Output) -> io::Result<()> {
        if output.format == Format::Json {
            return output.json(self);
        }
        let machine = &self.machine;
        let cpu = machine.cpu.as_deref().unwrap_or("unknown processor");
        let load = machine.load_before.map(|load| format!(", load {load:.1} before")).unwrap_or_default();
        output.line(&format!(
            "turnstone {} ({} build), {} cores of {cpu}, {}{load}",
            machine.turnstone, machine.profile, machine.cores, machine.system
        ))?;
        output.line(&format!("store: {}; median and range of {} rounds", self.store, self.rounds))?;
        if machine.profile == "debug" {
            output.line("This is a debug build: its figures say nothing about the product.")?;
        }
        self.subjects.iter().try_for_each(|section| section.print(output))
    }
}

impl Section {
    fn print(&self, output: &Output) -> io::Result<()> {
        output.line(&format!("\n{}: {}", self.subject, self.what))?;
        if let Some(naive) = self.naive {
            output.line(&format!("naive: {naive}"))?;
        }
        output.line(&format!(
            "disk just before: {} fdatasync/s of 4 KiB (p50 {} ms, p99 {} ms); the store: {} single commits/s",
            number(self.disk.fdatasync_per_s),
            number(self.disk.p50_ms),
            number(self.disk.p99_ms),
            number(self.disk.single_commits_per_s)
        ))?;
        let headings = vec!["FIGURE", "MEDIAN", "RANGE", "UNIT", "PER FDATASYNC", "NAIVE", "× NAIVE", "AIM"];
        output.line(&table::ruled(headings, self.figures.iter().map(row).collect(), output.tty))
    }
}

fn row(figure: &Figure) -> Vec<String> {
    let spread = figure.spread;
    let or_none = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), number);
    let aim = figure.aim.as_ref().map_or_else(
        || "-".to_owned(),
        |aim| format!("{}: {}", if aim.met { "met" } else { "missed" }, aim.aim),
    );
    vec![
        figure.name.clone(),
        number(spread.median),
        format!("{} to {}", number(spread.low), number(spread.high)),
        figure.unit.to_owned(),
        or_none(figure.per_fdatasync),
        or_none(figure.naive.map(|naive| naive.median)),
        or_none(figure.times_naive),
        aim,
    ]
}

/// Returns a number with three significant digits, and with separators of thousands.
fn number(value: f64) -> String {
    let decimals = match value.abs() {
        v if v >= 100.0 => 0,
        v if v >= 10.0 => 1,
        v if v >= 1.0 => 2,
        0.0 => 0,
        _ => 3,
    };
    let text = format!("{value:.decimals$}");
    let (whole, fraction) = text.split_once('.').map_or((text.as_str(), None), |(w, f)| (w, Some(f)));
    let digits = whole.trim_start_matches('-').len();
    let mut grouped = String::with_capacity(text.len() + digits / 3);
    for (at, digit) in whole.chars().enumerate() {
        let left = whole.len() - at;
        if at > 0 && left % 3 == 0 && left < digits {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    fraction.map_or(grouped.clone(), |fraction| format!("{grouped}.{fraction}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::bench::figures::{Series, Unit};

    #[test]
    fn numbers_are_written_for_people() {
        let written = [0.0, 0.1234, 1.5, 12.34, 123.4, 1234.5, 1_234_567.0, -1234.0].map(number);
        assert_eq!(written, ["0", "0.123", "1.50", "12.3", "123", "1,234", "1,234,567", "-1,234"]);
    }

    #[test]
    fn the_json_of_a_figure_is_flat_and_leaves_out_what_is_not_there() {
        let mut series = Series::new("f", Unit::PerSecond("turns/s"));
        series.beside(1000.0, 100.0, 500.0);
        let figure = series.figure().aiming("≥ 10 × naive", |_| true);
        assert_eq!(
            serde_json::to_value(figure).unwrap(),
            serde_json::json!({
                "name": "f", "unit": "turns/s", "median": 1000.0, "low": 1000.0, "high": 1000.0,
                "rounds": [1000.0], "per_fdatasync": 2.0,
                "naive": {"median": 100.0, "low": 100.0, "high": 100.0},
                "times_naive": 10.0, "aim": "≥ 10 × naive", "met": true,
            })
        );
        let plain = serde_json::to_value(Series::new("g", Unit::Milliseconds).figure()).unwrap();
        assert!(plain.get("naive").is_none() && plain.get("aim").is_none());
    }
}
