//! The documentation agrees with the code.

use crate::events_page;
use crate::house::{files, none, read, root};
use crate::lines::take_apart;
use std::path::Path;
use turnstone_domain::state::TRANSITIONS;

/// `LeaseExpired` → `LEASE_EXPIRED`.
fn screaming(camel: &str) -> String {
    let mut word = String::new();
    for letter in camel.chars() {
        if letter.is_uppercase() && !word.is_empty() {
            word.push('_');
        }
        word.extend(letter.to_uppercase());
    }
    word
}

#[test]
fn the_table_of_states_is_the_domains() {
    let page = read("docs/STATES.md");
    let shown: Vec<[String; 3]> = page
        .lines()
        .skip_while(|line| !line.starts_with("| from | trigger | to |"))
        .skip(2)
        .take_while(|line| line.starts_with('|'))
        .map(|line| {
            let mut cells = line.split('|').skip(1).map(|cell| cell.trim().trim_matches('`').to_owned());
            std::array::from_fn(|_| cells.next().unwrap_or_default())
        })
        .collect();
    let real: Vec<[String; 3]> = TRANSITIONS
        .iter()
        .map(|(from, by, to)| [from.to_string(), screaming(&format!("{by:?}")), to.to_string()])
        .collect();
    assert_eq!(
        shown, real,
        "docs/STATES.md (left) and TRANSITIONS in shared/domain/src/state.rs (right) differ"
    );
}

#[test]
fn the_pages_of_events_and_checkpoints_are_those_of_their_types() {
    let schemas = [events_page::Schemas::of_events(), events_page::Schemas::of_checkpoints()];
    let [events, checkpoints] = schemas.map(|schemas| schemas.render());
    let pages = [
        ("docs/EVENTS.md", events_page::render()),
        ("docs/schemas/events.json", events),
        ("docs/schemas/checkpoints.json", checkpoints),
    ];
    for (path, page) in pages {
        if std::env::var_os("TURNSTONE_BLESS").is_some() {
            std::fs::write(root().join(path), &page).unwrap();
        }
        assert_eq!(
            read(path),
            page,
            "{path} is out of date: run `TURNSTONE_BLESS=1 cargo test -p turnstone-tests --test tidy events`"
        );
    }
}

#[test]
fn every_name_of_a_span_or_attribute_is_used() {
    let product = ["api", "scheduler", "worker", "cli", "shared"].map(|folder| files(folder, ".rs")).concat();
    let code: String = product.iter().map(|path| take_apart(&read(path)).code).collect();
    let problems: Vec<String> = read("shared/telemetry/src/names.rs")
        .lines()
        .filter_map(|line| {
            let line = line.trim_start();
            line.strip_prefix("Span ")
                .or(line.strip_prefix("Attribute "))
                .and_then(|rest| rest.split(' ').next())
        })
        .filter(|constant| !code.contains(&format!("names::{constant}")))
        .map(|constant| format!("names::{constant} is not used: use it, or take it out of names.rs"))
        .collect();
    none("A documented name is never seen:", &problems);
}

/// Returns the `[text](target)` links of a line, each with the rest of the line.
fn links(line: &str) -> Vec<(&str, &str)> {
    line.match_indices("](")
        .filter_map(|(at, _)| {
            let rest = &line[at + 2..];
            rest.find(')').map(|end| (&rest[..end], &rest[end + 1..]))
        })
        .collect()
}

/// True when the file has a test or a case of this name that the default suite runs.
fn runs_by_default(text: &str, name: &str) -> bool {
    let before = text.split(&format!("fn {name}(")).next().unwrap_or_default();
    let attributes = before.lines().rev().skip(1).take_while(|line| {
        let line = line.trim_start();
        line.starts_with("#[") || line.starts_with("///")
    });
    before.len() < text.len() && !attributes.into_iter().any(|line| line.trim_start().starts_with("#[ignore"))
}

#[test]
fn every_guarantee_names_a_test_that_runs_by_default() {
    let page = read("docs/GUARANTEES.md");
    let mut problems = Vec::new();
    let promises: Vec<&str> = page.lines().filter(|line| line.starts_with("- ")).collect();
    assert!(!promises.is_empty(), "docs/GUARANTEES.md has no guarantee");
    for line in promises {
        let tests: Vec<_> = links(line).into_iter().filter(|(target, _)| target.ends_with(".rs")).collect();
        if tests.is_empty() {
            problems.push(format!("no [test](…) `name` at the end of: {line}"));
        }
        let mut by_default = false;
        for (target, rest) in tests {
            let name = rest
                .trim_start()
                .strip_prefix('`')
                .and_then(|rest| rest.split('`').next())
                .unwrap_or_default();
            let text = std::fs::read_to_string(root().join("docs").join(target)).unwrap_or_default();
            if name.is_empty() || !text.contains(&format!("fn {name}(")) {
                problems.push(format!("{target} has no test called `{name}`"));
            }
            by_default |= runs_by_default(&text, name);
        }
        if !by_default {
            problems.push(format!("no test of the default suite proves: {line}"));
        }
    }
    none("A guarantee has no test:", &problems);
}

/// The pairs of a page that say "`function` in `file`".
fn placed(page: &str) -> Vec<(String, String)> {
    let text = page.split_whitespace().collect::<Vec<_>>().join(" ");
    let pair = |(at, between): (usize, &str)| {
        let name = text[..at].rsplit('`').next().unwrap_or_default();
        let file = text[at + between.len()..].split('`').next().unwrap_or_default();
        (name.rsplit("::").next().unwrap_or_default().to_owned(), file.to_owned())
    };
    text.match_indices("` in `").map(pair).filter(|(_, file)| file.ends_with(".rs")).collect()
}

#[test]
fn the_architecture_names_functions_where_they_are() {
    let placed = placed(&read("docs/ARCHITECTURE.md"));
    assert!(placed.len() > 50, "docs/ARCHITECTURE.md names {} functions", placed.len());
    let is_there = |name: &str, file: &str| {
        let text = std::fs::read_to_string(root().join(file)).unwrap_or_default();
        text.contains(&format!("fn {name}(")) || text.contains(&format!("fn {name}<"))
    };
    let missing = placed.into_iter().filter(|(name, file)| !is_there(name, file));
    let problems: Vec<String> = missing.map(|(name, file)| format!("`{name}` in `{file}`")).collect();
    none("docs/ARCHITECTURE.md names a function that is not there:", &problems);
}

#[test]
fn links_between_pages_lead_somewhere() {
    let mut problems = Vec::new();
    for page in files("", ".md") {
        let mut in_code = false;
        for (number, line) in read(&page).lines().enumerate() {
            in_code ^= line.starts_with("```");
            if in_code {
                continue;
            }
            for (target, _) in links(line) {
                let file = target.split('#').next().unwrap_or_default();
                let outside = target.contains("://") || target.starts_with("mailto:") || file.is_empty();
                let here = page.parent().unwrap_or(Path::new(""));
                if !outside && !root().join(here).join(file).exists() {
                    problems.push(format!("{}:{}: {target}", page.display(), number + 1));
                }
            }
        }
    }
    none("A link leads nowhere:", &problems);
}

#[test]
fn the_page_of_jobs_names_every_field_and_every_part_of_a_retry_policy() {
    let page = read("docs/JOBS.md");
    let fields = turnstone_ojs::agent_fields::SETTABLE;
    let system = turnstone_ojs::agent_fields::SYSTEM_MANAGED;
    let policy = serde_json::to_value(turnstone_domain::retry::RetryPolicy::default()).unwrap();
    let parts = policy.as_object().unwrap().keys().map(String::as_str);
    let missing: Vec<&str> = fields
        .into_iter()
        .chain(system)
        .chain(parts)
        .filter(|name| !page.contains(&format!("`{name}`")))
        .collect();
    assert!(missing.is_empty(), "docs/JOBS.md does not name {missing:?}");
    for line in page.lines().filter(|line| line.starts_with("| `ext_agent_")) {
        let name = line.split('`').nth(1).unwrap_or_default();
        assert!(fields.contains(&name), "docs/JOBS.md has a row for {name}, which no client may set");
    }
}

/// Returns each `function` in `file.rs` of a text, as the walkthroughs of docs/ARCHITECTURE.md name them.
fn functions_in_files(text: &str) -> Vec<(String, String)> {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let parts: Vec<&str> = text.split('`').collect();
    // Code is in the odd parts. A list of files, or a second function, continues the pair before it.
    let mut found: Vec<(String, String)> = Vec::new();
    for at in (1..parts.len()).step_by(2) {
        let (Some(function), Some(file)) = (parts.get(at), parts.get(at + 2)) else { continue };
        let is_file = |text: &str| text.contains('/') && text.ends_with(".rs");
        match parts[at + 1] {
            " in " if is_file(file) => {
                let name = function.rsplit("::").next().unwrap_or_default();
                found.push((name.to_owned(), (*file).to_owned()));
            }
            ", " | " and " | ", and " if is_file(function) && is_file(file) => {
                if let Some(name) = found.last().map(|(name, _)| name.clone()) {
                    found.push((name, (*file).to_owned()));
                }
            }
            _ => {}
        }
    }
    found
}

#[test]
fn the_walkthroughs_name_functions_that_exist() {
    let named = functions_in_files(&read("docs/ARCHITECTURE.md"));
    assert!(named.len() > 30, "docs/ARCHITECTURE.md has no walkthroughs: {named:?}");
    let problems: Vec<String> = named
        .iter()
        .filter(|(name, file)| {
            let text = std::fs::read_to_string(root().join(file)).unwrap_or_default();
            !text.contains(&format!("fn {name}(")) && !text.contains(&format!("fn {name}<"))
        })
        .map(|(name, file)| format!("{file} has no function `{name}`: change docs/ARCHITECTURE.md"))
        .collect();
    none("A walkthrough names a function that does not exist:", &problems);
}

#[test]
fn the_lists_of_files_of_contributing_are_current() {
    let page = read("CONTRIBUTING.md");
    let is_file = |text: &&str| {
        let extension = text.rsplit('.').next().unwrap_or_default();
        text.contains('/')
            && !text.contains(['…', ' '])
            && ["rs", "sql", "md", "toml", "txt"].contains(&extension)
    };
    let rows = page.lines().filter(|line| line.starts_with("| ") && line.contains(". `"));
    let named: Vec<&str> = rows.flat_map(|row| row.split('`').skip(1).step_by(2)).filter(is_file).collect();
    assert!(named.len() > 30, "CONTRIBUTING.md has no lists of files: {named:?}");
    let problems: Vec<String> = named
        .iter()
        .filter(|file| !root().join(file).exists())
        .map(|file| format!("{file}: change the list in CONTRIBUTING.md"))
        .collect();
    none("CONTRIBUTING.md names a file that does not exist:", &problems);
}
