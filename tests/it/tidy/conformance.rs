//! Each case of `tests/it/conformance` runs on every store.

use crate::house::{files, none, read};
use crate::lines::take_apart;

/// The stores, as `conformance/backend.rs` names them. The last one is PostgreSQL behind PgBouncer.
const STORES: [&str; 4] = ["Sqlite", "Sealed", "Postgres", "Pooled"];
/// Files whose tests are no cases of one store.
const APART: [&str; 2] = ["mod.rs", "migrations.rs"];

/// Returns the names in the lists of a file.
fn listed(code: &str) -> Vec<&str> {
    code.split("on_every_store![")
        .skip(1)
        .flat_map(|rest| rest.split(']').next().unwrap_or_default().split(','))
        .map(str::trim)
        .filter(|name| !name.is_empty())
        .collect()
}

/// Returns the functions of a file that take a store only and return nothing.
fn cases(code: &str) -> Vec<&str> {
    code.lines()
        .filter_map(|line| line.strip_suffix(": &Opened) {"))
        .filter(|line| !line.starts_with(' '))
        .filter_map(|line| line.split_once("async fn "))
        .filter_map(|(_, rest)| rest.split_once('('))
        .filter(|(_, parameter)| !parameter.contains(','))
        .map(|(name, _)| name)
        .collect()
}

#[test]
fn every_case_of_conformance_runs_on_every_store() {
    let (mut problems, mut count) = (Vec::new(), 0);
    for path in files("tests/it/conformance", ".rs") {
        let code = take_apart(&read(&path)).code;
        let (listed, cases) = (listed(&code), cases(&code));
        count += listed.len();
        for case in cases {
            // Other cases call a part of themselves.
            let is_part = code.matches(&format!("{case}(")).count() > 1;
            if !listed.contains(&case) && !is_part {
                problems.push(format!("{}: list `{case}` in on_every_store![…]", path.display()));
            }
        }
        let name = path.file_name().unwrap().to_string_lossy();
        if code.contains("#[tokio::test") && !APART.contains(&name.as_ref()) {
            problems
                .push(format!("{}: make the test a case, and list it in on_every_store![…]", path.display()));
        }
    }
    assert!(count > 100, "only {count} cases are found");
    none("A rule is not checked on every store:", &problems);
}

#[test]
fn the_list_of_cases_makes_a_test_per_store() {
    let code = take_apart(&read("tests/it/conformance/mod.rs")).code;
    let body = code.split("macro_rules!").nth(1).unwrap_or_default();
    let missing = STORES.iter().filter(|store| !body.contains(&format!("open(Backend::{store})")));
    let problems: Vec<String> =
        missing.map(|store| format!("no test of a case opens Backend::{store}")).collect();
    none("A store is left out:", &problems);
}
