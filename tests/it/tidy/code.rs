//! Words and names that no Rust file may have.

use crate::house::{files, none, read};
use crate::lines::take_apart;

/// Forbidden words, and what to do instead.
const FORBIDDEN: &[(&str, &str)] = &[
    ("todo!(", "build it or leave it out"),
    ("unimplemented!(", "build it or leave it out"),
    ("dbg!(", "use tracing"),
    ("#[allow(", "use #[expect(…, reason = \"…\")]"),
    ("#![allow(", "use #![expect(…, reason = \"…\")]"),
];

/// Words that do not describe a file.
const EMPTY_NAMES: &[&str] = &["util", "utils", "helper", "helpers", "common", "misc", "manager", "handler"];

#[test]
fn the_code_has_nothing_unfinished_or_silenced() {
    let mut problems = Vec::new();
    for path in files("", ".rs") {
        let source = take_apart(&read(&path));
        for (number, line) in source.code.lines().enumerate() {
            for (word, instead) in FORBIDDEN {
                if line.contains(word) {
                    problems.push(format!("{}:{}: `{word}`: {instead}", path.display(), number + 1));
                }
            }
        }
    }
    none("Some code is unfinished or silences a lint:", &problems);
}

/// How the reason of an ignored test begins: it takes long, or needs a program or a system.
const IGNORED: &[&str] = &["#[ignore = \"long: ", "ignore = \"needs "];

#[test]
fn an_ignored_test_says_why() {
    let mut problems = Vec::new();
    for path in files("", ".rs") {
        let text = read(&path);
        let code = take_apart(&text).code;
        for (number, (code, line)) in code.lines().zip(text.lines()).enumerate() {
            let ignores = code.contains("#[ignore") || code.contains(" ignore = \"");
            if ignores && !IGNORED.iter().any(|reason| line.contains(reason)) {
                problems.push(format!(
                    "{}:{}: begin the reason with `long: ` or `needs `",
                    path.display(),
                    number + 1
                ));
            }
        }
    }
    none("Some tests are ignored without a reason:", &problems);
}

#[test]
fn no_test_sleeps() {
    let mut problems = Vec::new();
    for path in files("", ".rs") {
        let code = take_apart(&read(&path)).code;
        // The harness may wait, and tests use it. Unit tests are below `#[cfg(test)]` or in a file of their own.
        let stem = path.file_stem().unwrap().to_string_lossy();
        let all = path.starts_with("tests/it") || stem == "tests" || stem.ends_with("_tests");
        let tests_from = if all { Some(0) } else { code.find("#[cfg(test)]\nmod tests {") };
        let Some(from) = tests_from else { continue };
        for found in code[from..].match_indices("sleep(") {
            let line = code[..from + found.0].lines().count();
            problems.push(format!("{}:{line}: wait for a condition, or move the clock", path.display()));
        }
    }
    none("A test sleeps:", &problems);
}

#[test]
fn no_test_measures_real_time() {
    let mut problems = Vec::new();
    for path in files("tests/it", ".rs") {
        for (number, line) in take_apart(&read(&path)).code.lines().enumerate() {
            if line.contains("elapsed()") {
                problems.push(format!("{}:{}: assert the order of events", path.display(), number + 1));
            }
        }
    }
    none("A test depends on how quick the machine is; timings belong into benches/:", &problems);
}

/// Public functions of the store whose futures cannot be boxed: one is generic, the other is no `Send` for every lifetime.
const UNBOXED: &[&str] = &["audited", "migrate"];

/// A crate that awaits an `async fn` of another one compiles its body and all below it. Every crate awaits the store.
#[test]
fn the_store_is_compiled_once() {
    let mut problems = Vec::new();
    for path in files("shared/store/src", ".rs") {
        let text = read(&path);
        let mut before = "";
        for (number, line) in text.lines().enumerate() {
            let name = line
                .trim_start()
                .strip_prefix("pub async fn ")
                .and_then(|rest| rest.split(['(', '<']).next());
            if let Some(name) = name.filter(|name| !UNBOXED.contains(name) && before.trim() != "#[boxed]") {
                problems.push(format!("{}:{}: {name}", path.display(), number + 1));
            }
            before = line;
        }
    }
    none("A public function of the store lacks `#[boxed]`:", &problems);
}

#[test]
fn file_names_describe_the_file() {
    let problems: Vec<String> = files("", ".rs")
        .iter()
        .filter(|path| {
            let stem = path.file_stem().unwrap().to_string_lossy().into_owned();
            stem.split('_').any(|word| EMPTY_NAMES.contains(&word))
        })
        .map(|path| format!("{}: use a word of docs/GLOSSARY.md", path.display()))
        .collect();
    none("A file's name does not describe it:", &problems);
}
