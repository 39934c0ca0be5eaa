//! `turnstone engagement diff`: the first difference of two engagements, and the cost of each of their turns.

use crate::client::Received;
use crate::commands::Session;
use crate::commands::budget::cost::priced;
use crate::output::table::{self, plain};
use crate::output::{Format, text};
use serde_json::Value;
use std::process::ExitCode;
use turnstone_api::answers::{Diff, DiffCost, DiffParting, DiffSide, DiffTurn};

/// Prints it.
///
/// # Errors
/// The request fails, or there is no such engagement.
pub async fn run(a: &str, b: &str, session: &Session) -> anyhow::Result<ExitCode> {
    let output = session.output;
    let query = [("with", b.to_owned())];
    let diff: Received<Diff> = session.client()?.get(&["engagements", a, "diff"], &query).await?;
    match output.format {
        Format::Json => output.json(&diff)?,
        Format::Ids | Format::Table => {
            output.line(&text::line(&parting(diff.parts_at.as_ref())))?;
            let headings = vec!["TURN", "A", "TOKENS", "COST", "B", "TOKENS", "COST", ""];
            let mut rows: Vec<Vec<String>> = diff.turns.iter().map(row).collect();
            let total = |cost: &DiffCost| spent(String::new(), cost);
            let (a, b) = (total(&diff.total.a), total(&diff.total.b));
            rows.push([vec!["all".to_owned()], a, b, vec![String::new()]].concat());
            output.line(table::ruled(headings, rows, output.tty).trim_end())?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the first difference, in a sentence.
fn parting(at: Option<&DiffParting>) -> String {
    let Some(DiffParting { turn, phase, what, a, b }) = at else { return "they are the same".to_owned() };
    let short = |value: &Value| text::fit(&plain(value), 200).into_owned();
    let (a, b) = (short(a), short(b));
    format!("they part in turn {turn}, phase {phase}: {what} is {a} in A and {b} in B")
}

fn row(turn: &DiffTurn) -> Vec<String> {
    let word = match (turn.shared, turn.same) {
        (true, _) => "shared",
        (_, true) => "same",
        _ => "differs",
    };
    let (a, b) = (side(turn.a.as_ref()), side(turn.b.as_ref()));
    [vec![turn.turn.to_string()], a, b, vec![word.to_owned()]].concat()
}

fn side(side: Option<&DiffSide>) -> Vec<String> {
    let Some(DiffSide { cost, model, tool_calls }) = side else {
        return vec!["-".to_owned(), String::new(), String::new()];
    };
    let what: Vec<&str> = model.iter().chain(tool_calls).map(String::as_str).collect();
    spent(what.join(" "), cost)
}

fn spent(what: String, of: &DiffCost) -> Vec<String> {
    let tokens = of.tokens_in + of.tokens_out;
    vec![what, tokens.to_string(), priced(&of.cost.to_string(), tokens > 0)]
}
