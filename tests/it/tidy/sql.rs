//! SQL lives in files, in one crate, and every file is used.

use crate::house::{files, none, read, root};
use crate::lines::take_apart;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Paths without `.` and `..`.
fn plain(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut plain, part| {
        match part.as_os_str().to_string_lossy().as_ref() {
            ".." => {
                plain.pop();
            }
            "." => {}
            _ => plain.push(part),
        }
        plain
    })
}

/// Every `.sql` file that the store's sources include: by its path, or by its name in a list that a macro prefixes
/// with a folder and ends with `.sql`. A constant that is never used is a warning of the compiler.
fn included() -> BTreeSet<PathBuf> {
    let mut named = BTreeSet::new();
    for path in files("shared/store", ".rs") {
        let here = path.parent().unwrap();
        let literals = take_apart(&read(&path)).literals;
        let folders =
            literals.iter().filter(|(_, literal)| literal.ends_with('/') && literal.contains("sql/"));
        for (_, folder) in folders {
            named.extend(literals.iter().map(|(_, name)| plain(&here.join(format!("{folder}{name}.sql")))));
        }
        named.extend(
            literals
                .iter()
                .filter(|(_, name)| name.ends_with(".sql"))
                .map(|(_, name)| plain(&here.join(name))),
        );
    }
    named
}

#[test]
fn every_sql_file_is_used() {
    let named = included();
    let mut all = files("shared/store", ".sql");
    all.extend(files("migrations", ".sql"));
    assert!(!all.is_empty(), "no SQL file was found");
    let problems: Vec<String> = all
        .iter()
        .filter(|path| !named.contains(*path))
        .map(|path| format!("{}: nothing in shared/store includes it", path.display()))
        .collect();
    none("A SQL file is not used:", &problems);
}

#[test]
fn only_the_store_speaks_sql() {
    // Put together here, so that this file does not find itself.
    let verbs = [["SELECT", " "], ["INSERT", " INTO "], ["DELETE", " FROM "], ["CREATE", " TABLE "]]
        .map(|v| v.concat());
    let update = ["UPDATE", " "].concat();
    let mut problems = Vec::new();
    // The tests and the benchmarks look into the database as independent witnesses.
    let witnesses = ["shared/store", "tests", "benches"];
    let product = |path: &&PathBuf| !witnesses.iter().any(|folder| path.starts_with(folder));
    for path in files("", ".rs").iter().filter(product) {
        for (line, literal) in take_apart(&read(path)).literals {
            let changes = literal.contains(&update) && literal.contains(" SET ");
            if changes || verbs.iter().any(|verb| literal.contains(verb.as_str())) {
                problems.push(format!("{}:{line}: add a method to a trait of the store", path.display()));
            }
        }
    }
    none("SQL stands outside of shared/store:", &problems);
}

#[test]
fn sql_takes_time_and_chance_from_its_caller() {
    let forbidden =
        ["now()", "current_timestamp", "datetime(", "strftime(", "random()", "gen_random_uuid", "unixepoch("];
    let mut problems = Vec::new();
    for path in files("shared/store", ".sql").iter().chain(&files("migrations", ".sql")) {
        for (number, line) in read(path).lines().enumerate() {
            let statement = line.split("--").next().unwrap_or_default().to_lowercase();
            for word in forbidden.iter().filter(|word| statement.contains(**word)) {
                problems.push(format!("{}:{}: `{word}`: bind it", path.display(), number + 1));
            }
        }
    }
    none("SQL asks the database for time or chance:", &problems);
}

/// The names of the files in a folder.
fn names(folder: &str) -> BTreeSet<String> {
    files(folder, ".sql")
        .iter()
        .map(|path| path.file_name().unwrap().to_string_lossy().into_owned())
        .collect()
}

#[test]
fn both_databases_have_the_same_files() {
    let mut problems = Vec::new();
    for (one, other) in [
        ("migrations/sqlite", "migrations/postgres"),
        ("shared/store/sql/sqlite", "shared/store/sql/postgres"),
    ] {
        if !root().join(other).exists() {
            continue;
        }
        for name in names(one).symmetric_difference(&names(other)) {
            problems.push(format!("{name} stands in only one of {one} and {other}"));
        }
    }
    for name in names("shared/store/sql/common") {
        for dialect in ["shared/store/sql/sqlite", "shared/store/sql/postgres"] {
            if names(dialect).contains(&name) {
                problems.push(format!("{name} stands in common and in {dialect}; one of them is never used"));
            }
        }
    }
    none("The two databases have drifted apart:", &problems);
}

#[test]
fn migrations_have_numbers_of_their_own() {
    for folder in ["migrations/sqlite", "migrations/postgres"] {
        let numbers: Vec<u32> =
            names(folder).iter().map(|name| name[..4].parse().expect("a number")).collect();
        assert!(
            numbers.is_sorted_by(|one, next| one < next),
            "two files of {folder} have one number: {numbers:?}"
        );
    }
}
