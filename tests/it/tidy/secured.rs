//! A turn commits its answer before every slow call (ADR 0008). Breakers and rate limits take the proof as an
//! argument. Models, tools and MCP servers are also called without a turn; the function that calls one within a turn
//! has to hold the proof.

use crate::house::{files, none, read};

/// Calls that leave the process, or take long.
const SLOW: [&str; 8] = [
    ".answer(&request)",
    ".answer(invocation)",
    "tool.call(",
    ".catalogue()",
    ".named_agent(",
    ".remote_agent(",
    ".of_call(",
    "time::sleep(",
];

/// The timer of the whole attempt, which runs beside the turn.
const BESIDE: &str = "expired";

/// Returns the functions of a file: name and text, without the comments before them.
fn functions(text: &str) -> Vec<(&str, &str)> {
    let starts: Vec<usize> =
        text.match_indices("fn ").map(|(at, _)| at).filter(|at| text[..*at].ends_with([' ', '\n'])).collect();
    let ends = starts.iter().skip(1).copied().chain([text.len()]);
    let function = |(start, end): (usize, usize)| {
        let body = &text[start..end];
        let name = body["fn ".len()..].split(['(', '<']).next().unwrap_or_default();
        (name, body)
    };
    starts.iter().copied().zip(ends).map(function).collect()
}

#[test]
fn every_slow_call_of_a_turn_is_secured() {
    let (mut problems, mut found) = (Vec::new(), 0);
    let folders = ["worker/src/turn", "worker/src/state", "worker/src/phases", "worker/src/policy"];
    for path in folders.into_iter().flat_map(|folder| files(folder, ".rs")) {
        let text = read(&path);
        let product = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
        for (name, body) in functions(product) {
            let code: String = body
                .lines()
                .filter(|line| !line.trim_start().starts_with("//"))
                .collect::<Vec<_>>()
                .join("\n");
            for word in SLOW.iter().filter(|word| code.contains(**word)) {
                found += 1;
                if name == BESIDE {
                    continue;
                }
                if !code.contains("Secured") && !code.contains(".secured()?") {
                    problems.push(format!(
                        "{}: `{name}` has {word}; take a `Secured`, or call `secured()?` before it",
                        path.display()
                    ));
                }
            }
        }
    }
    assert!(found >= SLOW.len(), "the calls have other names now: {found} were found");
    none("A slow call may wait with an answer that is not committed:", &problems);
}
