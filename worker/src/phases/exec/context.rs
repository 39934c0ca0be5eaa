//! The input of a delegate: its task, and the context that its terms allow (OSSA §5, `context_propagation`).

use crate::state::journal::Call;
use crate::state::{Claimed, Stop, TurnHistory};
use serde_json::{Map, Value};
use std::sync::Arc;
use turnstone_domain::agent::delegation::ContextTransfer;
use turnstone_domain::message::{Message, RequestedCall, Role};

/// The most bytes of state in a delegate's input; keys beyond it are only counted.
const MOST_STATE_BYTES: usize = 64 * 1024;

/// Reads the state, if the delegate of one of these calls receives it.
///
/// # Errors
/// [`Stop::Store`].
pub async fn look(
    claimed: &Claimed,
    past: &mut TurnHistory,
    requested: &[RequestedCall],
) -> Result<(), Stop> {
    let shown = requested
        .iter()
        .filter_map(|call| claimed.delegate(&call.name))
        .any(|delegate| delegate.terms.shares_state());
    match past.state_scope(claimed).filter(|_| shown) {
        Some(scope) => past.look_at_state(claimed, &scope).await,
        None => Ok(()),
    }
}

/// Returns the input, and below it the context.
pub fn input(claimed: &Claimed, past: &TurnHistory, call: &Call) -> String {
    let arguments = &call.asked.arguments;
    let mut text = match arguments.get("input") {
        Some(Value::String(text)) => text.clone(),
        _ => arguments.to_string(),
    };
    let Some(terms) = claimed.delegate(&call.asked.name).map(|delegate| &delegate.terms) else {
        return text;
    };
    if terms.context != ContextTransfer::Minimal && !terms.custom_context.is_empty() {
        text.push_str(&format!("\n\nContext: {}", Value::Object(terms.custom_context.clone())));
    }
    if terms.shares_state() {
        push_state(claimed, past, &mut text);
    }
    if terms.shares_history() {
        push_history(claimed, past, &mut text);
    }
    text
}

fn push_state(claimed: &Claimed, past: &TurnHistory, text: &mut String) {
    let Some(buffer) = &past.buffer else { return };
    let (mut shown, mut bytes, mut left_out) = (Map::new(), 0, 0);
    for (key, value) in buffer.seen(claimed.deps.clock.now()) {
        let size = key.len() + value.to_string().len();
        if bytes + size > MOST_STATE_BYTES {
            left_out += 1;
            continue;
        }
        bytes += size;
        shown.insert(key.to_owned(), value.clone());
    }
    if shown.is_empty() && left_out == 0 {
        return;
    }
    text.push_str(&format!("\n\nThe state of the session: {}", Value::Object(shown)));
    if left_out > 0 {
        text.push_str(&format!(" ({left_out} further keys are left out because they are too long)"));
    }
}

fn push_history(claimed: &Claimed, past: &TurnHistory, text: &mut String) {
    text.push_str("\n\nThe conversation so far:");
    let messages = past.conversation.messages(&claimed.agent.memory);
    // Messages recalled from other engagements are for this agent alone (OAS-50).
    let of_this_one =
        |message: &&Arc<Message>| !message.content.is_empty() && message.recalled_from.is_none();
    for message in messages.iter().filter(of_this_one) {
        let who = match message.role {
            Role::User => "user",
            Role::Assistant => "assistant",
            Role::Tool => "tool",
            Role::System => continue,
        };
        text.push_str(&format!("\n{who}: {}", message.content));
    }
}
