//! The report: lines for people, JSON for programs.

use crate::figures::Figure;
use serde::Serialize;
use turnstone_benches::machine::Machine;

/// Everything that was measured, and on what.
#[derive(Debug, Serialize)]
pub struct Report {
    /// The machine.
    pub machine: Machine,
    /// True for a trial run, whose figures have no meaning.
    pub trial: bool,
    /// The measured subjects, in order.
    pub subjects: Vec<Section>,
}

/// One subject.
#[derive(Debug, Serialize)]
pub struct Section {
    /// Its name on the command line.
    pub subject: &'static str,
    /// The measured quantity.
    pub what: &'static str,
    /// Appends of 4 KiB with `fdatasync` in a second, just before.
    pub fdatasync_per_s: f64,
    /// The figures.
    pub figures: Vec<Figure>,
}

impl Report {
    /// Prints it.
    pub fn print(&self, json: bool) {
        if json {
            println!("{}", serde_json::to_string_pretty(self).expect("a report is JSON"));
            return;
        }
        let Machine { profile, cores, system, .. } = &self.machine;
        println!("{cores} cores, {system}, {profile} build; median (lowest to highest)");
        if self.trial {
            println!("Everything was only tried: the figures say nothing.");
        } else if *profile == "debug" {
            println!("This is a debug build: its figures say little about the product.");
        }
        for section in &self.subjects {
            println!("\n{}: {}", section.subject, section.what);
            println!("disk just before: {:.0} fdatasync/s of 4 KiB", section.fdatasync_per_s);
            section.figures.iter().for_each(line);
        }
    }
}

fn line(figure: &Figure) {
    let Figure { name, unit, median, low, high, .. } = figure;
    let range = if figure.values.len() > 1 { format!(" ({low} to {high})") } else { String::new() };
    let before = figure.before.map_or(String::new(), |before| format!(", {before} before"));
    let share =
        figure.share_of_clean.map_or(String::new(), |share| format!(", {:.0} % of clean", share * 100.0));
    let met = figure.met.map(|met| if met { "met" } else { "missed" });
    let aim = figure.aim.zip(met).map_or(String::new(), |(aim, met)| format!("; {met}: {aim}"));
    println!("  {name}: {median} {unit}{range}{before}{share}{aim}");
}
