//! The part of the conversation that the model sees (OSSA §4): the newest messages, and always the job's input.

use std::collections::VecDeque;
use turnstone_domain::agent::Memory;
use turnstone_domain::message::{Message, Role};
use turnstone_store::Recall;

/// Rough bytes of a token; only the window's size is measured with it, never the budget.
const BYTES_PER_TOKEN: i64 = 4;

/// The window. It is kept in memory while the worker holds the lease, so a turn reads nothing that it wrote itself.
#[derive(Debug, Default)]
pub struct Conversation {
    input: Option<Message>,
    window: VecDeque<Message>,
}

impl Conversation {
    /// The window as the store remembers it.
    pub fn recalled(recall: &Recall) -> Self {
        Self {
            input: recall.input.as_ref().map(|stored| stored.message.clone()),
            window: recall.messages.iter().map(|stored| stored.message.clone()).collect(),
        }
    }

    /// Appends a message and lets the oldest ones go.
    pub fn push(&mut self, message: Message, memory: &Memory) {
        self.window.push_back(message);
        let limit = usize::try_from(memory.window_size.max(1)).unwrap_or(usize::MAX);
        while self.window.len() > 1 && (self.window.len() > limit || self.too_long(memory)) {
            self.drop_oldest();
        }
    }

    fn too_long(&self, memory: &Memory) -> bool {
        let tokens = |message: &Message| i64::try_from(size(message)).unwrap_or(i64::MAX) / BYTES_PER_TOKEN;
        memory.max_history_tokens.is_some_and(|most| self.window.iter().map(tokens).sum::<i64>() > most)
    }

    /// Drops the oldest message; answers to dropped tool calls go with it, and the job's input is kept aside.
    fn drop_oldest(&mut self) {
        if let Some(oldest) = self.window.pop_front()
            && self.input.is_none()
            && oldest.role == Role::User
        {
            self.input = Some(oldest);
        }
        while self.window.len() > 1 && self.window.front().is_some_and(|next| next.role == Role::Tool) {
            self.window.pop_front();
        }
    }

    /// What the model sees, oldest first.
    pub fn messages(&self) -> Vec<Message> {
        self.input.iter().chain(&self.window).cloned().collect()
    }

    /// The newest message of the model, if it is the newest but for tool outcomes.
    pub fn answer(&self) -> Option<&Message> {
        self.window
            .iter()
            .rev()
            .find(|message| message.role != Role::Tool)
            .filter(|m| m.role == Role::Assistant)
    }

    /// Whether the outcome of this call was told to the model.
    pub fn has_outcome(&self, call_id: &turnstone_domain::CallId) -> bool {
        self.window.iter().rev().any(|message| message.call_id.as_ref() == Some(call_id))
    }
}

/// Bytes of everything in a message that a model reads.
pub fn size(message: &Message) -> usize {
    let calls: usize =
        message.tool_calls.iter().map(|call| call.name.len() + call.arguments.to_string().len() + 40).sum();
    message.content.len() + calls
}

#[cfg(test)]
mod tests {
    use super::*;
    use turnstone_domain::message::RequestedCall;

    fn asking(id: &str) -> Message {
        let call = RequestedCall { call_id: id.into(), name: "t".into(), arguments: serde_json::json!({}) };
        Message { tool_calls: vec![call], ..Message::text(Role::Assistant, "") }
    }

    #[test]
    fn the_window_slides_but_keeps_the_input_and_never_splits_a_call_from_its_outcome() {
        let memory = Memory { window_size: 4, max_history_tokens: None };
        let mut conversation = Conversation::default();
        conversation.push(Message::text(Role::User, "question"), &memory);
        for turn in 0..5 {
            let id = format!("c{turn}");
            conversation.push(asking(&id), &memory);
            conversation.push(Message::tool(id.as_str().into(), "out"), &memory);
            let seen = conversation.messages();
            assert_eq!(seen[0].content, "question");
            assert_ne!(seen[1].role, Role::Tool, "an outcome without its call in turn {turn}");
            assert!(seen.len() <= 5);
        }
    }

    #[test]
    fn the_window_is_bounded_in_tokens_too() {
        let memory = Memory { window_size: 100, max_history_tokens: Some(50) };
        let mut conversation = Conversation::default();
        for _ in 0..20 {
            conversation.push(Message::text(Role::Assistant, "x".repeat(100)), &memory);
        }
        assert_eq!(conversation.messages().len(), 2);
    }
}
