//! `turnstone engagement diff`: the first difference of two engagements, and the cost of each of their turns.

use crate::commands::Session;
use crate::commands::budget::cost::cost;
use crate::output::table::{self, plain};
use crate::output::{Format, text};
use serde_json::Value;
use std::process::ExitCode;

/// Prints it.
///
/// # Errors
/// The request fails, or there is no such engagement.
pub async fn run(a: &str, b: &str, session: &Session) -> anyhow::Result<ExitCode> {
    let output = session.output;
    let diff = session.client()?.get(&["engagements", a, "diff"], &[("with", b.to_owned())]).await?;
    match output.format {
        Format::Json => output.json(&diff)?,
        Format::Ids | Format::Table => {
            output.line(&text::line(&parting(&diff["parts_at"])))?;
            let headings = vec!["TURN", "A", "TOKENS", "COST", "B", "TOKENS", "COST", ""];
            let turns = diff["turns"].as_array().map(Vec::as_slice).unwrap_or_default();
            let mut rows: Vec<Vec<String>> = turns.iter().map(row).collect();
            let total = &diff["total"];
            rows.push(
                [vec!["all".to_owned()], side(&total["a"]), side(&total["b"]), vec![String::new()]].concat(),
            );
            output.line(table::ruled(headings, rows, output.tty).trim_end())?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the first difference, in a sentence.
fn parting(at: &Value) -> String {
    if at.is_null() {
        return "they are the same".to_owned();
    }
    let short = |value: &Value| text::fit(&plain(value), 200).into_owned();
    let (a, b) = (short(&at["a"]), short(&at["b"]));
    format!(
        "they part in turn {}, phase {}: {} is {a} in A and {b} in B",
        at["turn"],
        plain(&at["phase"]),
        plain(&at["what"])
    )
}

fn row(turn: &Value) -> Vec<String> {
    let word = match (&turn["shared"], &turn["same"]) {
        (Value::Bool(true), _) => "shared",
        (_, Value::Bool(true)) => "same",
        _ => "differs",
    };
    [vec![turn["turn"].to_string()], side(&turn["a"]), side(&turn["b"]), vec![word.to_owned()]].concat()
}

fn side(side: &Value) -> Vec<String> {
    if side.is_null() {
        return vec!["-".to_owned(), String::new(), String::new()];
    }
    let calls = side["tool_calls"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut what = vec![plain(&side["model"])];
    what.extend(calls.iter().map(plain));
    let tokens = side["tokens_in"].as_i64().unwrap_or(0) + side["tokens_out"].as_i64().unwrap_or(0);
    let what = if side.get("model").is_some() { what.join(" ") } else { String::new() };
    vec![what, tokens.to_string(), cost(side)]
}
