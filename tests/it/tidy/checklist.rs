//! `docs/OSSA-ROWS.md`, `docs/OAS-ROWS.md` and `docs/AGENT-SPEC-ROWS.md`: each row of a specification's checklist, and
//! the tests that show it. A test names the row in its doc comment.

use crate::house::{files, none, read, root};
use crate::{agent_spec_rows, oas_rows, ossa_rows};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// A specification's checklist.
struct Checklist {
    title: &'static str,
    /// The prefix of a row's number.
    prefix: &'static str,
    /// The generated page.
    page: &'static str,
    /// The file with the rows.
    source: &'static str,
    /// Row, weight, and requirement.
    rows: &'static [(&'static str, &'static str, &'static str)],
    /// Rows that this version does not support.
    not_yet: &'static [&'static str],
}

const CHECKLISTS: &[Checklist] = &[
    Checklist {
        title: "Agent Spec, row by row",
        prefix: "AGS-",
        page: "docs/AGENT-SPEC-ROWS.md",
        source: "tests/it/tidy/agent_spec_rows.rs",
        rows: agent_spec_rows::ROWS,
        not_yet: agent_spec_rows::NOT_YET,
    },
    Checklist {
        title: "OpenAgentSpec, row by row",
        prefix: "OAS-",
        page: "docs/OAS-ROWS.md",
        source: "tests/it/tidy/oas_rows.rs",
        rows: oas_rows::ROWS,
        not_yet: oas_rows::NOT_YET,
    },
    Checklist {
        title: "OSSA's runtime semantics, row by row",
        prefix: "RS-",
        page: "docs/OSSA-ROWS.md",
        source: "tests/it/tidy/ossa_rows.rs",
        rows: ossa_rows::ROWS,
        not_yet: ossa_rows::NOT_YET,
    },
];

/// Rows, and the tests that name them: `file` and function.
type Shown = BTreeMap<String, Vec<(String, String)>>;

impl Checklist {
    /// Returns the rows that a comment names, each once.
    fn rows_in(&self, comment: &str) -> Vec<String> {
        let mut rows = Vec::new();
        for (at, _) in comment.match_indices(self.prefix) {
            let digits: String =
                comment[at + self.prefix.len()..].chars().take_while(char::is_ascii_digit).collect();
            if digits.len() == 2 {
                rows.push(format!("{}{digits}", self.prefix));
            }
        }
        rows
    }

    fn shown(&self) -> Shown {
        let mut shown = Shown::new();
        for path in files("", ".rs").into_iter().filter(|path| !path.starts_with("tests/it/tidy")) {
            let end_to_end = path.starts_with("tests/it");
            let (mut rows, mut is_test) = (Vec::new(), end_to_end);
            for line in read(&path).lines() {
                let trimmed = line.trim_start();
                if let Some(comment) = trimmed.strip_prefix("///") {
                    rows.extend(self.rows_in(comment));
                } else if trimmed.starts_with("#[") {
                    is_test |= trimmed.contains("test");
                } else {
                    if let Some(name) = function(line).filter(|_| is_test) {
                        for row in rows.drain(..) {
                            let tests = shown.entry(row).or_default();
                            let place = (path.display().to_string(), name.to_owned());
                            if !tests.contains(&place) {
                                tests.push(place);
                            }
                        }
                    }
                    rows.clear();
                    is_test = end_to_end;
                }
            }
        }
        shown
    }

    fn render(&self, shown: &Shown) -> String {
        let Self { title, prefix, source, .. } = self;
        let example = format!("{prefix}26");
        let mut page = format!(
            "# {title}

This page is generated from the doc comments of the tests: a test that shows a row names it (`/// {example}: …`). Do not
edit it; change `{source}` or a test's comment and run
`TURNSTONE_BLESS=1 cargo test --workspace --test tidy checklist`. A row without a test fails that check, unless it is
marked as not supported yet.

Run one with `cargo test --workspace <name>`.

| row | rule | what it asks for | shown by |
|---|---|---|---|
"
        );
        for (row, rule, what) in self.rows {
            let tests: Vec<String> = shown
                .get(*row)
                .into_iter()
                .flatten()
                .map(|(path, name)| format!("[`{name}`](../{path})"))
                .collect();
            let tests = if self.not_yet.contains(row) { vec!["not yet".to_owned()] } else { tests };
            writeln!(page, "| {row} | {rule} | {what} | {} |", tests.join(", ")).unwrap();
        }
        page
    }
}

/// Returns the name of a function that begins on this line.
fn function(line: &str) -> Option<&str> {
    let rest = line.trim_start().trim_start_matches("pub ").trim_start_matches("async ");
    rest.strip_prefix("fn ").and_then(|rest| rest.split(['(', '<']).next())
}

#[test]
fn the_checklists_are_generated_from_the_tests() {
    for checklist in CHECKLISTS {
        let page = checklist.render(&checklist.shown());
        if std::env::var_os("TURNSTONE_BLESS").is_some() {
            std::fs::write(root().join(checklist.page), &page).unwrap();
        }
        assert_eq!(
            read(checklist.page),
            page,
            "{} is out of date: run `TURNSTONE_BLESS=1 cargo test --workspace --test tidy checklist`",
            checklist.page
        );
    }
}

#[test]
fn every_row_of_a_checklist_has_a_test() {
    let mut problems = Vec::new();
    for checklist in CHECKLISTS {
        let shown = checklist.shown();
        let odd = checklist
            .rows
            .iter()
            .filter(|(row, _, _)| shown.contains_key(*row) == checklist.not_yet.contains(row));
        problems.extend(odd.map(|(row, _, what)| {
            format!("{row} ({what}): name it in a test's comment or in NOT_YET, and not in both")
        }));
    }
    none("A row has no test:", &problems);
}

#[test]
fn tests_name_rows_that_exist() {
    let mut problems = Vec::new();
    for checklist in CHECKLISTS {
        let strange = checklist
            .shown()
            .into_iter()
            .filter(|(row, _)| !checklist.rows.iter().any(|(known, _, _)| known == row));
        problems.extend(
            strange.map(|(row, tests)| format!("{row} in {} is no row of {}", tests[0].0, checklist.source)),
        );
    }
    none("A test names a row that does not exist:", &problems);
}
