//! The report of cases: as a table, as JSON, and as JUnit XML.

use super::case::{Case, CaseOutcome};
use serde_json::{Value, json};
use std::fmt::Write as _;

/// The outcomes of cases, by specification.
#[derive(Default)]
pub struct Report {
    entries: Vec<Entry>,
}

struct Entry {
    specification: String,
    name: String,
    rows: Vec<String>,
    outcome: CaseOutcome,
}

impl Report {
    /// Adds the outcome of a case.
    pub fn add(&mut self, specification: &str, case: &Case, outcome: CaseOutcome) {
        let (name, rows) = (case.name.clone(), case.rows.clone());
        self.entries.push(Entry { specification: specification.to_owned(), name, rows, outcome });
    }

    /// Returns the names of the cases that failed.
    pub fn failed(&self) -> Vec<String> {
        let failed = self.entries.iter().filter(|entry| entry.outcome.failed.is_some());
        failed.map(|entry| format!("{}: {}", entry.specification, entry.name)).collect()
    }

    fn specifications(&self) -> Vec<(&str, Vec<&Entry>)> {
        let mut found: Vec<(&str, Vec<&Entry>)> = Vec::new();
        for entry in &self.entries {
            match found.last_mut().filter(|(name, _)| *name == entry.specification) {
                Some((_, entries)) => entries.push(entry),
                None => found.push((&entry.specification, vec![entry])),
            }
        }
        found
    }

    /// Returns a line for each case, and one for each specification.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for (name, entries) in self.specifications() {
            let passed = entries.iter().filter(|entry| entry.outcome.failed.is_none()).count();
            lines.push(format!("{name}: {passed} of {}", entries.len()));
            for entry in entries {
                let word = if entry.outcome.failed.is_some() { "FAILED" } else { "ok" };
                lines.push(format!("  {word:<6}  {} ({})", entry.name, entry.rows.join(", ")));
                lines.extend(entry.outcome.failed.iter().map(|why| format!("          {why}")));
            }
        }
        lines
    }

    /// Returns all of it as JSON.
    pub fn json(&self) -> Value {
        let case = |entry: &&Entry| {
            json!({"name": entry.name, "rows": entry.rows, "passed": entry.outcome.failed.is_none(),
                   "failure": entry.outcome.failed, "ms": entry.outcome.took.as_millis() as u64})
        };
        let specifications = self.specifications().into_iter().map(|(name, entries)| {
            let passed = entries.iter().filter(|entry| entry.outcome.failed.is_none()).count();
            let cases: Vec<Value> = entries.iter().map(case).collect();
            json!({"specification": name, "passed": passed, "failed": entries.len() - passed, "cases": cases})
        });
        json!({"specifications": specifications.collect::<Vec<_>>()})
    }

    /// Returns all of it as JUnit XML.
    pub fn junit(&self) -> String {
        let mut xml = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n".to_owned();
        for (name, entries) in self.specifications() {
            let failures = entries.iter().filter(|entry| entry.outcome.failed.is_some()).count();
            let _ = writeln!(
                xml,
                "  <testsuite name=\"{name}\" tests=\"{}\" failures=\"{failures}\">",
                entries.len()
            );
            for entry in entries {
                let (case, time) = (escaped(&entry.name), entry.outcome.took.as_secs_f64());
                let _ = write!(xml, "    <testcase classname=\"{name}\" name=\"{case}\" time=\"{time:.3}\"");
                let _ = match &entry.outcome.failed {
                    None => writeln!(xml, "/>"),
                    Some(why) => writeln!(xml, "><failure message=\"{}\"/></testcase>", escaped(why)),
                };
            }
            xml.push_str("  </testsuite>\n");
        }
        xml + "</testsuites>\n"
    }
}

/// A text as it is written in an attribute; characters that XML forbids are left out.
fn escaped(text: &str) -> String {
    let kept = text.chars().filter(|c| !c.is_control());
    kept.collect::<String>()
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_failure_is_in_every_form_of_the_report() {
        let case =
            Case::read("[[case]]\nname = \"a < b\"\nrows = [\"X-01\"]\nstep = []\n").unwrap().remove(0);
        let mut report = Report::default();
        for failed in [None, Some("step 1: \"no\"".to_owned())] {
            report.add("ojs", &case, CaseOutcome { took: Duration::from_millis(5), failed });
        }
        assert_eq!(report.failed(), ["ojs: a < b"]);
        assert_eq!(report.lines()[0], "ojs: 1 of 2");
        assert_eq!(report.json()["specifications"][0]["failed"], 1);
        let xml = report.junit();
        assert!(
            xml.contains("tests=\"2\" failures=\"1\"")
                && xml.contains("a &lt; b")
                && xml.contains("&quot;no&quot;")
        );
    }
}
