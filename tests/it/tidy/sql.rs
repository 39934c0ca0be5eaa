//! SQL lives in files, in one crate, and every file is used.

use crate::house::{files, none, read, root};
use crate::lines::take_apart;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// Returns every word of the store's code. A statement is a constant that is named like its file.
fn words_of_the_store() -> BTreeSet<String> {
    let constant =
        |word: &&str| word.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_');
    files("shared/store/src", ".rs")
        .iter()
        .flat_map(|path| {
            let code = take_apart(&read(path)).code;
            let words = code.split(|c: char| !c.is_alphanumeric() && c != '_');
            words.filter(constant).map(str::to_owned).collect::<Vec<_>>()
        })
        .collect()
}

/// Returns the statements of a file: its sections, or the one that is named like it.
fn statements(path: &PathBuf) -> Vec<String> {
    let text = read(path);
    let sections: Vec<String> =
        text.lines().filter_map(|line| line.strip_prefix("--- ")).map(str::to_owned).collect();
    match sections.is_empty() {
        true => vec![path.file_stem().unwrap().to_string_lossy().into_owned()],
        false => sections,
    }
}

#[test]
fn every_statement_is_used() {
    let used = words_of_the_store();
    let all = files("shared/store/sql", ".sql");
    assert!(!all.is_empty(), "no SQL file was found");
    let problems: Vec<String> = all
        .iter()
        .flat_map(|path| statements(path).into_iter().map(move |name| (path, name)))
        .filter(|(_, name)| !used.contains(&name.to_uppercase()))
        .map(|(path, name)| format!("{}: nothing in shared/store names {name}", path.display()))
        .collect();
    none("A statement is not used:", &problems);
}

#[test]
fn every_migration_is_used() {
    let list = root().join("shared/store/src/migrations.rs");
    let named = take_apart(&read(&list)).literals;
    let problems: Vec<String> = files("migrations", ".sql")
        .iter()
        .filter(|path| {
            let path = path.to_string_lossy();
            !named
                .iter()
                .any(|(_, name)| name.ends_with(".sql") && path.ends_with(name.trim_start_matches("../")))
        })
        .map(|path| format!("{}: {} does not list it", path.display(), list.display()))
        .collect();
    none("A migration is not used:", &problems);
}

#[test]
fn a_statement_is_named_by_its_verb() {
    let verbs = [
        ("insert_", ["INSERT", " INTO "].concat()),
        ("select_", ["SELECT", " "].concat()),
        ("update_", ["UPDATE", " "].concat()),
        ("delete_", ["DELETE", " FROM"].concat()),
        // SQLite has nothing to lock.
        ("lock_", ["SELECT", " "].concat()),
    ];
    let problems: Vec<String> = files("shared/store/sql", ".sql")
        .iter()
        .filter(|path| {
            let text = read(path);
            let file = path.file_name().unwrap().to_string_lossy().into_owned();
            let fits = |name: &String| {
                let verb = verbs.iter().find(|(verb, _)| name.starts_with(verb));
                verb.is_some_and(|(_, words)| text.contains(words.as_str()))
            };
            !statements(path).iter().chain([&file]).all(fits)
        })
        .map(|path| {
            format!("{}: begin its name with insert_, select_, update_, lock_ or delete_", path.display())
        })
        .collect();
    none("A statement is not named by what it does:", &problems);
}

#[test]
fn a_text_for_one_database_says_why() {
    let problems: Vec<String> = ["sqlite", "postgres"]
        .iter()
        .flat_map(|dialect| files(&format!("shared/store/sql/{dialect}"), ".sql"))
        .filter(|path| {
            let text = read(path);
            let comment = text.lines().take_while(|line| line.starts_with("--"));
            !comment.collect::<Vec<_>>().join(" ").contains("Differs from ")
        })
        .map(|path| format!("{}: say in its first comment what differs", path.display()))
        .collect();
    none("A statement has two texts and does not say why:", &problems);
}

#[test]
fn only_the_store_speaks_sql() {
    // Put together here, so that this file does not match.
    let verbs = [["SELECT", " "], ["INSERT", " INTO "], ["DELETE", " FROM "], ["CREATE", " TABLE "]]
        .map(|v| v.concat());
    let update = ["UPDATE", " "].concat();
    let mut problems = Vec::new();
    // The tests and the benchmarks read the database as independent witnesses.
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

/// Returns the names of the files in a folder.
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
            problems.push(format!("{name} is in only one of {one} and {other}"));
        }
    }
    for name in names("shared/store/sql/common") {
        for dialect in ["shared/store/sql/sqlite", "shared/store/sql/postgres"] {
            if names(dialect).contains(&name) {
                problems.push(format!("{name} is in common and in {dialect}; one of them is never used"));
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

/// Returns the breaches of the rules of migrations/README.md in a migration after the baseline.
fn breaches(text: &str, for_postgres: bool) -> Vec<&'static str> {
    let head: Vec<&str> = text.lines().take_while(|line| line.is_empty() || line.starts_with("--")).collect();
    let declares = |line: &str| head.contains(&line);
    let code: Vec<&str> = text.lines().map(|line| line.split("--").next().unwrap_or_default()).collect();
    let code = code.join(" ").to_uppercase().split_whitespace().collect::<Vec<_>>().join(" ");
    let mut breaches = Vec::new();
    if declares("-- additive") == declares("-- not additive") {
        breaches.push("declare `-- additive` or `-- not additive` before the first statement");
    }
    let made = code.split(" TABLE ").skip(1).map(|rest| rest.trim_start_matches("IF NOT EXISTS "));
    let made: Vec<&str> = made.filter_map(|rest| rest.split([' ', '(']).next()).collect();
    for statement in code.split(';').map(str::trim) {
        let is_index = statement.starts_with("CREATE INDEX") || statement.starts_with("CREATE UNIQUE INDEX");
        let is_concurrent = statement.contains("INDEX CONCURRENTLY IF NOT EXISTS ");
        let table = statement.split(" ON ").nth(1).and_then(|rest| rest.split([' ', '(']).next());
        let is_on_new_table = table.is_some_and(|table| made.contains(&table));
        if for_postgres && is_index && !is_concurrent && !is_on_new_table {
            breaches.push("make the index with CREATE INDEX CONCURRENTLY IF NOT EXISTS");
        }
        if for_postgres && statement.contains(" CONCURRENTLY ") && !declares("-- no transaction") {
            breaches.push("declare `-- no transaction` for CONCURRENTLY");
        }
        let adds = statement.starts_with("ALTER TABLE") && statement.contains(" ADD ");
        if adds && statement.contains("NOT NULL") && !statement.contains(" DEFAULT ") {
            breaches.push("give the new column a default, or allow NULL");
        }
        if adds && statement.contains(" CONSTRAINT ") && !statement.contains("NOT VALID") {
            breaches.push("add the constraint as NOT VALID");
        }
        let rewrites = [" TYPE ", " SET NOT NULL", "VACUUM FULL", "CLUSTER "];
        if !statement.starts_with("CREATE") && rewrites.iter().any(|words| statement.contains(words)) {
            breaches.push("do not rewrite or scan the table under a lock");
        }
    }
    breaches
}

#[test]
fn a_migration_after_the_baseline_holds_up_no_statement() {
    let mut problems = Vec::new();
    for (folder, for_postgres) in [("migrations/sqlite", false), ("migrations/postgres", true)] {
        for path in files(folder, ".sql").iter().filter(|path| !path.ends_with("0001_baseline.sql")) {
            let found = breaches(&read(path), for_postgres);
            problems.extend(found.into_iter().map(|breach| format!("{}: {breach}", path.display())));
        }
    }
    none("A migration breaks the rules of migrations/README.md:", &problems);
}

#[test]
fn the_rules_of_migrations_are_checked() {
    for fine in [
        "-- additive\nALTER TABLE jobs ADD COLUMN n BIGINT;\nALTER TABLE jobs ADD COLUMN m BIGINT NOT NULL DEFAULT 0;",
        "-- additive\nCREATE TABLE later (n BIGINT NOT NULL);\nCREATE INDEX later_n ON later (n);",
        "-- Of jobs.\n-- additive\n-- no transaction\nCREATE INDEX CONCURRENTLY IF NOT EXISTS jobs_n ON jobs (n);",
        "-- not additive\nALTER TABLE jobs DROP COLUMN n;",
    ] {
        assert_eq!(breaches(fine, true), Vec::<&str>::new(), "{fine}");
    }
    for (broken, words) in [
        ("ALTER TABLE jobs ADD COLUMN n BIGINT;", "declare `-- additive`"),
        ("-- additive\nCREATE INDEX jobs_n ON jobs (n);", "CREATE INDEX CONCURRENTLY"),
        ("-- additive\nCREATE INDEX CONCURRENTLY IF NOT EXISTS a ON jobs (n);", "`-- no transaction`"),
        ("-- additive\nALTER TABLE jobs ADD COLUMN n BIGINT NOT NULL;", "a default"),
        ("-- additive\nALTER TABLE jobs ADD CONSTRAINT c CHECK (n > 0);", "NOT VALID"),
        ("-- not additive\nALTER TABLE jobs ALTER COLUMN n TYPE TEXT;", "rewrite"),
        ("-- not additive\nALTER TABLE jobs ALTER COLUMN n SET NOT NULL;", "rewrite"),
    ] {
        let found = breaches(broken, true);
        assert!(found.iter().any(|breach| breach.contains(words)), "{broken}: {found:?}");
    }
}
