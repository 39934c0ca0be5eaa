//! `docs/OSSA-ROWS.md`: each row of OSSA's runtime semantics, and the tests that show it. A test says the row in its comment.

use crate::house::{files, none, read, root};
use crate::ossa_rows::{NOT_YET, ROWS};
use std::collections::BTreeMap;
use std::fmt::Write as _;

const HEAD: &str = "# OSSA's runtime semantics, row by row

This page is generated from the comments of the tests: a test that shows a row says its number (`/// RS-26: …`). Do not edit
it; change `tests/it/tidy/ossa_rows.rs` or a test's comment and run
`TURNSTONE_BLESS=1 cargo test --workspace --test tidy checklist`. A row without a test fails that check, unless
it says that it is not done yet.

Run one with `cargo test --workspace <name>`.

| row | rule | what it asks for | shown by |
|---|---|---|---|
";

/// The rows a comment names: `RS-07`, each once.
fn rows_in(comment: &str) -> Vec<String> {
    let mut rows = Vec::new();
    for (at, _) in comment.match_indices("RS-") {
        let digits: String = comment[at + 3..].chars().take_while(char::is_ascii_digit).collect();
        if digits.len() == 2 {
            rows.push(format!("RS-{digits}"));
        }
    }
    rows
}

/// The name of a function that begins on this line.
fn function(line: &str) -> Option<&str> {
    let rest = line.trim_start().trim_start_matches("pub ").trim_start_matches("async ");
    rest.strip_prefix("fn ").and_then(|rest| rest.split(['(', '<']).next())
}

/// Rows, and where the tests that name them are: `file` and function.
fn shown() -> BTreeMap<String, Vec<(String, String)>> {
    let mut shown: BTreeMap<String, Vec<(String, String)>> = BTreeMap::new();
    for path in files("", ".rs").into_iter().filter(|path| !path.starts_with("tests/it/tidy")) {
        let end_to_end = path.starts_with("tests/it");
        let (mut rows, mut is_test) = (Vec::new(), end_to_end);
        for line in read(&path).lines() {
            let trimmed = line.trim_start();
            if let Some(comment) = trimmed.strip_prefix("///") {
                rows.extend(rows_in(comment));
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

fn render(shown: &BTreeMap<String, Vec<(String, String)>>) -> String {
    let mut page = HEAD.to_owned();
    for (row, rule, what) in ROWS {
        let tests: Vec<String> = shown
            .get(*row)
            .into_iter()
            .flatten()
            .map(|(path, name)| format!("[`{name}`](../{path})"))
            .collect();
        let tests = if NOT_YET.contains(row) { vec!["not yet".to_owned()] } else { tests };
        writeln!(page, "| {row} | {rule} | {what} | {} |", tests.join(", ")).unwrap();
    }
    page
}

#[test]
fn the_checklist_of_ossa_is_generated_from_the_tests() {
    let page = render(&shown());
    if std::env::var_os("TURNSTONE_BLESS").is_some() {
        std::fs::write(root().join("docs/OSSA-ROWS.md"), &page).unwrap();
    }
    assert_eq!(
        read("docs/OSSA-ROWS.md"),
        page,
        "docs/OSSA-ROWS.md is out of date: run `TURNSTONE_BLESS=1 cargo test --workspace --test tidy checklist`"
    );
}

#[test]
fn every_row_of_the_checklist_has_a_test() {
    let shown = shown();
    let problems: Vec<String> = ROWS
        .iter()
        .filter(|(row, _, _)| shown.contains_key(*row) == NOT_YET.contains(row))
        .map(|(row, _, what)| {
            format!("{row} ({what}): a test's comment names it, or NOT_YET does, and not both")
        })
        .collect();
    none("A row has no test:", &problems);
}

#[test]
fn tests_name_rows_that_exist() {
    let problems: Vec<String> = shown()
        .into_iter()
        .filter(|(row, _)| !ROWS.iter().any(|(known, _, _)| known == row))
        .map(|(row, tests)| format!("{row} in {} is no row of the checklist", tests[0].0))
        .collect();
    none("A test names a row that does not exist:", &problems);
}
