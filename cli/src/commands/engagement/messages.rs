//! `turnstone engagement messages`: the conversation of an engagement.

use crate::client::Received;
use crate::commands::Session;
use crate::output::table::plain;
use crate::output::{Format, columns, text};
use std::process::ExitCode;
use turnstone_api::answers::Message;
use turnstone_domain::RawObject;

/// The messages of one request.
const PAGE: u32 = 200;

/// Prints the messages, oldest first.
///
/// # Errors
/// There is no such engagement, or the request fails.
pub async fn run(id: &str, session: &Session) -> anyhow::Result<ExitCode> {
    let (client, output) = (session.client()?, session.output);
    let mut messages: Vec<Received<Message>> = Vec::new();
    let mut after = 0_i64;
    loop {
        let query = [("after", after.to_string()), ("limit", PAGE.to_string())];
        let page: RawObject = client.get(&["engagements", id, "messages"], &query).await?;
        messages.extend(client.part::<Vec<_>>(&page, "messages")?);
        after = client.part(&page, "cursor")?;
        if !client.part::<bool>(&page, "has_more")? {
            break;
        }
    }
    match output.format {
        Format::Json => output.list(&messages, |_| "", &[])?,
        Format::Ids => messages.iter().try_for_each(|message| output.line(&message.seq.to_string()))?,
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
fn words(message: &Message) -> String {
    let mut lines = vec![format!("{} (turn {})", plain(&message.role), message.turn)];
    lines.extend((!message.content.is_empty()).then(|| text::block(&message.content).into_owned()));
    for call in &message.tool_calls {
        lines.push(text::line(&format!("calls {} {}", call.name, call.arguments)));
    }
    lines.join("\n  ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_message_names_its_author_and_its_calls() {
        let call = json!({"call_id": "c", "name": "book", "arguments": {"price": 640}});
        let message = json!({"seq": 1, "role": "assistant", "turn": 2, "content": "I book.", "tool_calls": [call],
                             "created_at": "2026-01-31T12:00:00Z"});
        assert_eq!(
            words(&serde_json::from_value(message).unwrap()),
            "assistant (turn 2)\n  I book.\n  calls book {\"price\":640}"
        );
    }
}
