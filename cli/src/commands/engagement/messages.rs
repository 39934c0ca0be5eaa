//! `turnstone engagement messages`: the conversation of an engagement.

use crate::client::elements;
use crate::commands::Session;
use crate::output::table::plain;
use crate::output::{Format, columns, text};
use serde_json::Value;
use std::process::ExitCode;

/// The messages of one request.
const PAGE: u32 = 200;

/// Prints the messages, oldest first.
///
/// # Errors
/// There is no such engagement, or the request fails.
pub async fn run(id: &str, session: &Session) -> anyhow::Result<ExitCode> {
    let (client, output) = (session.client()?, session.output);
    let mut messages: Vec<Value> = Vec::new();
    let mut after = 0;
    loop {
        let query = [("after", after.to_string()), ("limit", PAGE.to_string())];
        let page = client.get(&["engagements", id, "messages"], &query).await?;
        let has_more = page["has_more"] == true;
        after = page["cursor"].as_i64().unwrap_or(after);
        messages.extend(elements(page, "messages"));
        if !has_more {
            break;
        }
    }
    match output.format {
        Format::Json => output.list(&messages, "seq", &[])?,
        Format::Ids => messages.iter().try_for_each(|message| output.line(&plain(&message["seq"])))?,
        Format::Table => {
            for message in &messages {
                output.line(&text::wrapped(&words(message), columns(&output)))?;
            }
            if messages.is_empty() {
                output.remark("there are none");
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns a message for people: who wrote it, what it says, and which tools it calls.
fn words(message: &Value) -> String {
    let (role, turn) = (plain(&message["role"]), plain(&message["turn"]));
    let mut lines = vec![format!("{} (turn {turn})", text::line(&role))];
    let content = plain(&message["content"]);
    lines.extend((!content.is_empty()).then(|| text::block(&content).into_owned()));
    for call in message["tool_calls"].as_array().into_iter().flatten() {
        let arguments = if call["input"].is_null() { &call["arguments"] } else { &call["input"] };
        lines.push(text::line(&format!("calls {} {arguments}", plain(&call["name"]))));
    }
    lines.join("\n  ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_message_names_its_author_and_its_calls() {
        let call = json!({"name": "book", "input": {"price": 640}});
        let message = json!({"role": "assistant", "turn": 2, "content": "I book.", "tool_calls": [call]});
        assert_eq!(words(&message), "assistant (turn 2)\n  I book.\n  calls book {\"price\":640}");
    }
}
