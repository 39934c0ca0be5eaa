//! The pages `docs/*-ROWS.md`: each row of a specification's checklist, and
//! the tests that show it. A test names the row in its doc comment.

use crate::house::{files, none, read, root};
use crate::{agent_protocol_rows, agent_spec_rows, oas_rows, ojs_agent_rows, ossa_rows};
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
        title: "Agent Protocol, row by row",
        prefix: "AP-",
        page: "docs/AGENT-PROTOCOL-ROWS.md",
        source: "tests/it/tidy/agent_protocol_rows.rs",
        rows: agent_protocol_rows::ROWS,
        not_yet: agent_protocol_rows::NOT_YET,
    },
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
        title: "OJS's extension for AI agents, row by row",
        prefix: "AIX-",
        page: "docs/OJS-AGENT-ROWS.md",
        source: "tests/it/tidy/ojs_agent_rows.rs",
        rows: ojs_agent_rows::ROWS,
        not_yet: ojs_agent_rows::NOT_YET,
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

/// A test that names a row, with the sentence that it shows.
struct Proof {
    path: String,
    name: String,
    sentence: String,
}

/// Rows, and the tests that name them.
type Shown = BTreeMap<String, Vec<Proof>>;

/// Returns the first sentence of a comment, after the rows that it names.
fn sentence(comment: &str) -> String {
    let text = match comment.split_once(": ") {
        Some((rows, rest)) if rows.contains('-') && rows.len() < 60 => rest,
        _ => comment,
    };
    let end = text.find(". ").unwrap_or(text.len());
    text[..end].trim_end_matches('.').replace('|', "\\|")
}

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
            let (mut rows, mut is_test, mut said) = (Vec::new(), end_to_end, String::new());
            for line in read(&path).lines() {
                let trimmed = line.trim_start();
                if let Some(comment) = trimmed.strip_prefix("///") {
                    rows.extend(self.rows_in(comment));
                    said = format!("{said} {}", comment.trim()).trim().to_owned();
                } else if trimmed.starts_with("#[") {
                    is_test |= trimmed.contains("test");
                } else {
                    if let Some(name) = function(line).filter(|_| is_test) {
                        for row in rows.drain(..) {
                            let tests = shown.entry(row).or_default();
                            let path = path.display().to_string();
                            if !tests.iter().any(|known| known.path == path && known.name == name) {
                                let sentence = sentence(&said);
                                tests.push(Proof { path, name: name.to_owned(), sentence });
                            }
                        }
                    }
                    rows.clear();
                    said.clear();
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

Use this page to find the tests that show a rule of the specification. Run one with `cargo test --workspace <name>`.

This page is generated. A test names its rows in its doc comment (`/// {example}: …`), and the sentence after the name says
what the test shows. Do not edit this page: change `{source}` or a test's comment, and run
`TURNSTONE_BLESS=1 cargo test --workspace --test tidy checklist`. A row without a test fails that check, unless it is
marked as not supported yet.

| row | rule | what it asks for | shown by |
|---|---|---|---|
"
        );
        for (row, rule, what) in self.rows {
            let tests: Vec<String> = shown
                .get(*row)
                .into_iter()
                .flatten()
                .map(|Proof { path, name, sentence }| format!("[`{name}`](../{path}): {sentence}"))
                .collect();
            let tests = if self.not_yet.contains(row) { vec!["not yet".to_owned()] } else { tests };
            writeln!(page, "| {row} | {rule} | {what} | {} |", tests.join("<br>")).unwrap();
        }
        page
    }
}

/// The page about all of them.
const CONFORMANCE: &str = "docs/CONFORMANCE.md";

/// Returns the table of the page: rows, and the tests that show them.
fn summary() -> String {
    let mut table =
        "| specification | rows | shown | tests | not supported |\n|---|---|---|---|---|\n".to_owned();
    for checklist in CHECKLISTS {
        let shown = checklist.shown();
        let tests: std::collections::BTreeSet<_> =
            shown.values().flatten().map(|proof| (&proof.path, &proof.name)).collect();
        let (title, page) = (checklist.title.split(',').next().unwrap_or_default(), checklist.page);
        let (rows, missing) = (checklist.rows.len(), checklist.not_yet.len());
        let page = page.trim_start_matches("docs/");
        let (proven, tests) = (rows - missing, tests.len());
        writeln!(table, "| [{title}]({page}) | {rows} | {proven} | {tests} | {missing} |").unwrap();
    }
    table
}

#[test]
fn the_table_of_the_conformance_page_is_current() {
    let page = read(CONFORMANCE);
    let (head, rest) = page.split_once("<!-- generated -->\n").expect("a mark before the table");
    let (_, tail) = rest.split_once("<!-- end -->").expect("a mark after the table");
    let current = format!("{head}<!-- generated -->\n{}<!-- end -->{tail}", summary());
    if std::env::var_os("TURNSTONE_BLESS").is_some() {
        std::fs::write(root().join(CONFORMANCE), &current).unwrap();
    }
    assert_eq!(page, current, "run `TURNSTONE_BLESS=1 cargo test --workspace --test tidy checklist`");
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
            strange
                .map(|(row, tests)| format!("{row} in {} is no row of {}", tests[0].path, checklist.source)),
        );
    }
    none("A test names a row that does not exist:", &problems);
}
