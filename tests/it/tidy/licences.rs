//! Every dependency's licence is one that `deny.toml` allows, like in `cargo deny`.

use crate::house::{none, read};
use crate::imports::metadata;

/// Returns the strings of the first list called `allow` below `[licenses]`.
fn allowed() -> Vec<String> {
    let text = read("deny.toml");
    let section = text.split("[licenses]").nth(1).unwrap();
    let list = section.split("allow = [").nth(1).unwrap().split(']').next().unwrap();
    list.split('"').skip(1).step_by(2).map(str::to_owned).collect()
}

/// Returns true when the allowed licences satisfy an SPDX expression: one side of each OR, both sides of each AND.
fn satisfied(expression: &str, allowed: &[String]) -> bool {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut at = 0;
    either(&words, &mut at, allowed) && at == words.len()
}

fn either(words: &[&str], at: &mut usize, allowed: &[String]) -> bool {
    let mut good = both(words, at, allowed);
    while words.get(*at) == Some(&"OR") {
        *at += 1;
        good |= both(words, at, allowed);
    }
    good
}

fn both(words: &[&str], at: &mut usize, allowed: &[String]) -> bool {
    let mut good = one(words, at, allowed);
    while words.get(*at) == Some(&"AND") {
        *at += 1;
        good &= one(words, at, allowed);
    }
    good
}

fn one(words: &[&str], at: &mut usize, allowed: &[String]) -> bool {
    let Some(word) = words.get(*at) else { return false };
    *at += 1;
    if *word == "(" {
        let good = either(words, at, allowed);
        *at += 1;
        return good;
    }
    let mut name = (*word).to_owned();
    if words.get(*at) == Some(&"WITH") {
        name = format!("{name} WITH {}", words.get(*at + 1).unwrap_or(&""));
        *at += 2;
    }
    allowed.contains(&name)
}

#[test]
fn expressions_follow_spdx() {
    let allowed = ["MIT", "Apache-2.0 WITH LLVM-exception", "ISC"].map(str::to_owned);
    for (expression, good) in [
        ("MIT", true),
        ("GPL-3.0", false),
        ("GPL-3.0 OR MIT", true),
        ("MIT/GPL-3.0", true),
        ("GPL-3.0 AND MIT", false),
        ("(GPL-3.0 OR MIT) AND ISC", true),
        ("Apache-2.0 WITH LLVM-exception", true),
        ("Apache-2.0", false),
    ] {
        assert_eq!(satisfied(expression, &allowed), good, "{expression}");
    }
}

#[test]
fn every_dependency_has_an_allowed_licence() {
    let (metadata, allowed) = (metadata(), allowed());
    let mut problems = Vec::new();
    for package in metadata.packages.iter().filter(|package| package.source.is_some()) {
        let licence = package.license.as_deref().unwrap_or("none named");
        if !satisfied(licence, &allowed) {
            problems.push(format!("{} {}: {licence}", package.name, package.version));
        }
    }
    none(
        "A licence is not in the list of deny.toml; replace the crate or argue for the licence there:",
        &problems,
    );
}
