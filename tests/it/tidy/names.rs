//! One type name, one meaning: few modules of the product define a type of the same name.

use crate::house::{files, none, read};
use crate::lines::take_apart;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// The most modules that define a type of one name.
const MOST: usize = 3;

/// The folders of the product.
const PRODUCT: &[&str] = &["api", "cli", "examples", "scheduler", "shared", "worker"];

/// Names with one meaning in each of many modules.
const ALLOWED: &[&str] = &[
    // The arguments of a command called `list`.
    "ListArgs",
];

/// Returns the name of a type that a line of code defines. A nested `type` belongs to a trait.
fn defined(line: &str) -> Option<&str> {
    let nested = line.starts_with(' ');
    let line = line.trim_start();
    let line = match line.strip_prefix("pub") {
        Some(rest) => {
            rest.strip_prefix('(').and_then(|rest| rest.split_once(')')).map_or(rest, |(_, rest)| rest)
        }
        None => line,
    };
    let (keyword, rest) = line.trim_start().split_once(' ')?;
    let defines = matches!(keyword, "struct" | "enum" | "trait" | "union") || keyword == "type" && !nested;
    let name = rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default();
    (defines && name.starts_with(char::is_uppercase)).then_some(name)
}

#[test]
fn a_type_name_is_defined_in_few_modules() {
    let mut found: BTreeMap<String, BTreeSet<PathBuf>> = BTreeMap::new();
    for path in PRODUCT.iter().flat_map(|folder| files(folder, ".rs")) {
        for name in take_apart(&read(&path)).code.lines().filter_map(defined) {
            found.entry(name.to_owned()).or_default().insert(path.clone());
        }
    }
    let problems: Vec<String> = found
        .iter()
        .filter(|(name, paths)| paths.len() > MOST && !ALLOWED.contains(&name.as_str()))
        .map(|(name, paths)| {
            let paths: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
            format!("{name}: {}", paths.join(", "))
        })
        .collect();
    none(&format!("More than {MOST} modules define a type of one name; qualify it in each:"), &problems);
}

#[test]
fn definitions_of_types_are_found() {
    let lines = [
        ("pub(in crate::model) struct Place<'a> {", Some("Place")),
        ("    enum Inner;", Some("Inner")),
        ("type Acts = Vec<String>;", Some("Acts")),
        ("    type Output = u8;", None),
        ("pub trait Tool: Send {", Some("Tool")),
        ("let structure = 1;", None),
    ];
    for (line, name) in lines {
        assert_eq!(defined(line), name, "{line}");
    }
}
