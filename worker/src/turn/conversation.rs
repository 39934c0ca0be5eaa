//! The part of the conversation that the model sees (OSSA §4): the newest messages, and always the job's input.

use std::collections::VecDeque;
use turnstone_domain::agent::Memory;
use turnstone_domain::message::{ContentPart, Message, Role};
use turnstone_store::Recall;

/// Rough bytes of a token; only the window's size is measured with it, never the budget.
const BYTES_PER_TOKEN: i64 = 4;

/// The window. It is kept in memory while the worker holds the lease, so a turn reads nothing that it wrote itself.
///
/// Messages of the newest turn never leave it, however long they are: an answer stays with all outcomes it asked for.
#[derive(Debug, Default)]
pub struct Conversation {
    input: Option<Message>,
    window: VecDeque<(i64, Message)>,
}

impl Conversation {
    /// The window as the store remembers it, cut as if it had been kept in memory.
    pub fn recalled(recall: &Recall, memory: &Memory) -> Self {
        let mut conversation = Self {
            input: recall.input.as_ref().map(|stored| stored.message.clone()),
            window: recall.messages.iter().map(|stored| (stored.turn, stored.message.clone())).collect(),
        };
        // The oldest recalled messages may be outcomes whose call was not recalled.
        conversation.drop_orphans();
        conversation.trim(memory);
        conversation
    }

    /// Appends a message of a turn and lets the oldest ones go.
    pub fn push(&mut self, turn: i64, message: Message, memory: &Memory) {
        self.window.push_back((turn, message));
        self.trim(memory);
    }

    fn trim(&mut self, memory: &Memory) {
        let newest = self.window.back().map_or(0, |(turn, _)| *turn);
        let limit = usize::try_from(memory.window_size.max(1)).unwrap_or(usize::MAX);
        while self.window.front().is_some_and(|(turn, _)| *turn < newest)
            && (self.window.len() > limit || self.too_long(memory))
        {
            self.drop_oldest();
        }
    }

    fn too_long(&self, memory: &Memory) -> bool {
        let tokens = |message: &Message| i64::try_from(size(message)).unwrap_or(i64::MAX) / BYTES_PER_TOKEN;
        memory
            .max_history_tokens
            .is_some_and(|most| self.window.iter().map(|(_, message)| tokens(message)).sum::<i64>() > most)
    }

    /// Drops the oldest message; answers to dropped tool calls go with it, and the job's input is kept aside.
    fn drop_oldest(&mut self) {
        if let Some((_, oldest)) = self.window.pop_front()
            && self.input.is_none()
            && oldest.role == Role::User
        {
            self.input = Some(oldest);
        }
        self.drop_orphans();
    }

    fn drop_orphans(&mut self) {
        while self.window.front().is_some_and(|(_, next)| next.role == Role::Tool) {
            self.window.pop_front();
        }
    }

    /// What the model sees, oldest first.
    pub fn messages(&self) -> Vec<Message> {
        self.input.iter().chain(self.window.iter().map(|(_, message)| message)).cloned().collect()
    }

    /// The newest message of the model, if it is the newest but for tool outcomes.
    pub fn answer(&self) -> Option<&Message> {
        self.window
            .iter()
            .rev()
            .map(|(_, message)| message)
            .find(|message| message.role != Role::Tool)
            .filter(|message| message.role == Role::Assistant)
    }

    /// Whether the outcome of this call was told to the model.
    pub fn has_outcome(&self, call_id: &turnstone_domain::CallId) -> bool {
        self.window.iter().rev().any(|(_, message)| message.call_id.as_ref() == Some(call_id))
    }
}

/// Bytes of everything in a message that a model reads as text. Pictures are not among them: see [`images`].
pub fn size(message: &Message) -> usize {
    let calls: usize =
        message.tool_calls.iter().map(|call| call.name.len() + call.arguments.to_string().len() + 40).sum();
    // A template may print the ids of calls and outcomes.
    let parts: usize = message.parts.iter().map(part_size).sum();
    message.content.len().max(parts) + calls + message.call_id.as_ref().map_or(0, |id| id.as_str().len() + 12)
}

fn part_size(part: &ContentPart) -> usize {
    match part {
        ContentPart::Text { text } => text.len(),
        ContentPart::Image { .. } => 0,
        // The name and the media type stand around the content in the words of each provider.
        ContentPart::File { name, content, media_type } => name.len() + content.len() + media_type.len() + 64,
    }
}

/// Pictures in a message.
pub fn images(message: &Message) -> usize {
    message.parts.iter().filter(|part| part.is_image()).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use turnstone_domain::Timestamp;
    use turnstone_domain::message::{RequestedCall, StoredMessage};

    fn asking(id: &str) -> Message {
        let call = RequestedCall { call_id: id.into(), name: "t".into(), arguments: serde_json::json!({}) };
        Message { tool_calls: vec![call], ..Message::text(Role::Assistant, "") }
    }

    #[test]
    fn the_window_slides_but_keeps_the_input_and_never_splits_a_call_from_its_outcome() {
        let memory = Memory { window_size: 4, max_history_tokens: None, ..Memory::default() };
        let mut conversation = Conversation::default();
        conversation.push(1, Message::text(Role::User, "question"), &memory);
        for turn in 1..6 {
            let id = format!("c{turn}");
            conversation.push(turn, asking(&id), &memory);
            conversation.push(turn, Message::tool(id.as_str().into(), "out"), &memory);
            let seen = conversation.messages();
            assert_eq!(seen[0].content, "question");
            assert_ne!(seen[1].role, Role::Tool, "an outcome without its call in turn {turn}");
            assert!(seen.len() <= 5);
        }
    }

    #[test]
    fn the_newest_turn_stays_whole_however_long_it_is() {
        let memory = Memory { window_size: 2, max_history_tokens: Some(50), ..Memory::default() };
        let mut conversation = Conversation::default();
        conversation.push(1, Message::text(Role::User, "question"), &memory);
        conversation.push(1, asking("c"), &memory);
        conversation.push(1, Message::tool("c".into(), "x".repeat(20_000)), &memory);
        assert!(conversation.answer().is_some_and(|answer| !answer.tool_calls.is_empty()));
        assert_eq!(conversation.messages().len(), 3);
    }

    #[test]
    fn the_window_is_bounded_in_tokens_too() {
        let memory = Memory { window_size: 100, max_history_tokens: Some(50), ..Memory::default() };
        let mut conversation = Conversation::default();
        for turn in 0..20 {
            conversation.push(turn, Message::text(Role::Assistant, "x".repeat(100)), &memory);
        }
        assert_eq!(conversation.messages().len(), 2);
    }

    #[test]
    fn what_is_recalled_is_what_was_kept() {
        let memory = Memory { window_size: 4, max_history_tokens: None, ..Memory::default() };
        let mut kept = Conversation::default();
        let mut recall = Recall::default();
        let mut say = |turn: i64, message: Message| {
            kept.push(turn, message.clone(), &memory);
            let seq = i64::try_from(recall.messages.len()).unwrap() + 1;
            recall.messages.push(StoredMessage { seq, turn, message, created_at: Timestamp(0) });
        };
        say(1, Message::text(Role::User, "question"));
        for turn in 1..9 {
            let id = format!("c{turn}");
            say(turn, asking(&id));
            say(turn, Message::tool(id.as_str().into(), "out"));
        }
        // The store brings the newest rows, and the input apart when it is not among them.
        recall.input = Some(recall.messages[0].clone());
        recall.messages.drain(..6);
        assert_eq!(Conversation::recalled(&recall, &memory).messages(), kept.messages());
    }
}
