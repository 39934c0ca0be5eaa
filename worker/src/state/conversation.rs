//! The part of the conversation that the model sees (OSSA §4): the newest messages, and always the job's
//! input.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use turnstone_domain::CallId;
use turnstone_domain::agent::{Forgetting, Memory};
use turnstone_domain::message::{ContentPart, Message, Role, StoredMessage};
use turnstone_store::Recall;

/// A rough number of bytes per token; it measures only the window's size, never the budget.
const BYTES_PER_TOKEN: i64 = 4;

/// The least length of a shortened message of an older turn, in bytes.
const LEAST_SHARE: usize = 200;

/// The window. It is kept in memory while the worker holds the lease, so a turn never reads its own messages
/// from the store.
///
/// Messages of the newest turn never leave it, however long they are: an answer stays with the outcomes of
/// all its calls.
#[derive(Debug, Default)]
pub struct Conversation {
    input: Option<Arc<Message>>,
    summary: Option<(i64, Arc<Message>)>,
    window: VecDeque<(i64, Arc<Message>)>,
    /// The job's first turn: earlier messages answer earlier inputs.
    begins: i64,
    /// The private conversation of the current turn; `None` is the one with the user.
    thread: Option<String>,
}

/// Messages that no longer fit and need a summary.
#[derive(Debug)]
pub struct Overflow {
    /// The previous summary, and the messages, oldest first.
    pub messages: Vec<Arc<Message>>,
    /// The first turn that stays unchanged.
    pub until: i64,
}

impl Conversation {
    /// Returns the window from the store's messages, cut as if it had been kept in memory. `begins` is the
    /// job's first turn.
    pub fn recalled(recall: &Recall, memory: &Memory, begins: i64) -> Self {
        let input = recall.input.as_ref().map(|stored| Arc::new(stored.message.clone()));
        let mut conversation = Self { input, begins, ..Self::default() };
        for stored in recall.messages.iter().filter(|stored| !is_broken_off(stored, recall, begins)) {
            conversation.take(stored.turn, Arc::new(stored.message.clone()));
        }
        // The oldest recalled messages may be outcomes whose call was not recalled.
        conversation.drop_orphans();
        conversation.trim(memory);
        conversation
    }

    /// Makes this conversation the one of the current turn; `None` is the one with the user.
    pub fn enter(&mut self, thread: Option<String>) {
        self.thread = thread;
    }

    /// Returns the private conversation of the current turn; `None` for the one with the user.
    pub fn thread(&self) -> Option<&str> {
        self.thread.as_deref()
    }

    /// Returns the messages of another conversation, oldest first.
    pub fn of_thread<'a>(&'a self, thread: &'a str) -> impl Iterator<Item = &'a Message> {
        self.window
            .iter()
            .map(|(_, message)| &**message)
            .filter(move |message| message.thread.as_deref() == Some(thread))
    }

    /// Returns the answer of the model in this turn, whatever followed it.
    pub fn answer_in(&self, turn: i64) -> Option<&Message> {
        let newest = self.window.iter().rev().take_while(|(of, _)| *of == turn);
        newest
            .map(|(_, message)| &**message)
            .find(|message| message.role == Role::Assistant && message.thread == self.thread)
    }

    /// Appends a message of a turn and drops the oldest ones that no longer fit.
    pub fn push(&mut self, turn: i64, message: impl Into<Arc<Message>>, memory: &Memory) {
        self.take(turn, message.into());
        self.trim(memory);
    }

    /// Appends a message; a summary replaces the messages that it summarizes.
    fn take(&mut self, turn: i64, message: Arc<Message>) {
        match message.summary {
            // A summary of a transform is kept beside the messages that it replaces for the model.
            Some(summary) if message.thread.is_none() => {
                self.forget_before(summary.until);
                self.summary = Some((turn, message));
            }
            _ => self.window.push_back((turn, message)),
        }
    }

    fn trim(&mut self, memory: &Memory) {
        if memory.strategy == Forgetting::Summarize {
            // Messages that no longer fit wait for their summary.
            return;
        }
        let newest = self.newest();
        while self.window.front().is_some_and(|(turn, _)| *turn < newest) && self.overflows(memory) {
            match memory.strategy {
                Forgetting::ImportanceWeighted => self.drop_least(),
                _ => self.drop_oldest(),
            }
        }
    }

    /// Drops the least important turn before the newest, and of equal ones the oldest. A turn is dropped as a
    /// whole, so that no call loses its outcome.
    fn drop_least(&mut self) {
        let newest = self.newest();
        let mut weights: BTreeMap<i64, u8> = BTreeMap::new();
        for (turn, message) in self.window.iter().filter(|(turn, _)| *turn < newest) {
            let weight = weights.entry(*turn).or_default();
            *weight = (*weight).max(importance(message));
        }
        let Some(least) = weights.into_iter().min_by_key(|(turn, weight)| (*weight, *turn)) else { return };
        let is_least = |of: i64| of == least.0;
        if self.input.is_none() {
            let begins = self.begins.max(1);
            let said = self
                .window
                .iter()
                .find(|(of, message)| is_least(*of) && *of >= begins && message.role == Role::User);
            self.input = said.map(|(_, message)| Arc::clone(message));
        }
        self.window.retain(|(of, _)| !is_least(*of));
    }

    fn newest(&self) -> i64 {
        self.window.back().map_or(0, |(turn, _)| *turn)
    }

    fn overflows(&self, memory: &Memory) -> bool {
        self.window.len() > window_size(memory) || self.too_long(memory)
    }

    fn too_long(&self, memory: &Memory) -> bool {
        let newest = self.newest();
        let sizes = self.window.iter().map(|(turn, message)| shown_size(message, *turn < newest, memory));
        memory.max_history_tokens.is_some_and(|most| tokens(sizes.sum()) > most)
    }

    /// Returns the messages that no longer fit and need a summary: so many of the oldest turns that half of
    /// the window becomes free. So a summary is made from time to time, and not in every turn.
    pub fn overflow(&self, memory: &Memory) -> Option<Overflow> {
        if memory.strategy != Forgetting::Summarize || !self.overflows(memory) {
            return None;
        }
        let newest = self.newest();
        let fits = |turn: i64| {
            let kept = || self.window.iter().filter(|(of, _)| *of >= turn).map(|(_, message)| &**message);
            kept().count() <= window_size(memory) / 2
                && memory.max_history_tokens.is_none_or(|most| tokens(kept().map(size).sum()) <= most / 2)
        };
        let until = self.window.iter().map(|(turn, _)| *turn).find(|turn| fits(*turn)).unwrap_or(newest);
        let old: Vec<Arc<Message>> = self
            .window
            .iter()
            .filter(|(turn, _)| *turn < until)
            .map(|(_, message)| Arc::clone(message))
            .collect();
        let messages = self.summary.iter().map(|(_, summary)| summary).chain(&old).cloned().collect();
        (!old.is_empty()).then_some(Overflow { messages, until })
    }

    /// Drops the messages before this turn, except the job's input.
    pub fn forget_before(&mut self, turn: i64) {
        while self.window.front().is_some_and(|(of, _)| *of < turn) {
            self.drop_oldest();
        }
    }

    /// Drops the oldest message with the outcomes of its tool calls; the job's input is kept aside.
    fn drop_oldest(&mut self) {
        if let Some((of, oldest)) = self.window.pop_front()
            && self.input.is_none()
            && of >= self.begins.max(1)
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

    /// Returns the messages for the model, oldest first.
    pub fn messages(&self, memory: &Memory) -> Vec<Arc<Message>> {
        let newest = self.newest();
        let window = self.window.iter().filter(|(_, message)| message.thread == self.thread);
        let window = window.map(|(turn, message)| shown(message, *turn < newest, memory));
        let summary = self.summary.iter().map(|(_, summary)| summary);
        let input = self.input.iter().filter(|message| message.thread == self.thread);
        input.chain(summary).cloned().chain(window).collect()
    }

    /// Returns the tokens of the summaries made in this turn: prompt and completion tokens.
    pub fn summed_up_for(&self, turn: i64) -> (i64, i64) {
        let newest = self.window.iter().rev().take_while(|(of, _)| *of == turn);
        let own = self.summary.iter().filter(|(of, _)| *of == turn);
        let made = own.chain(newest).filter_map(|(_, message)| message.summary);
        made.fold((0, 0), |(tokens_in, tokens_out), one| {
            (tokens_in + one.tokens_in, tokens_out + one.tokens_out)
        })
    }

    /// Returns the newest message of the model, if only tool outcomes follow it.
    pub fn answer(&self) -> Option<&Message> {
        self.window
            .iter()
            .rev()
            .map(|(_, message)| &**message)
            .filter(|message| message.thread == self.thread)
            .find(|message| message.role != Role::Tool)
            .filter(|message| message.role == Role::Assistant)
    }

    /// Returns true if the model has received the outcome of this call.
    pub fn has_outcome(&self, call_id: &CallId) -> bool {
        self.window.iter().rev().any(|(_, message)| message.call_id.as_ref() == Some(call_id))
    }
}

/// Returns true for a call or an outcome of an earlier input's turn that ended before all outcomes existed.
/// No model accepts one without the other.
fn is_broken_off(stored: &StoredMessage, recall: &Recall, begins: i64) -> bool {
    let of_turn = || recall.messages.iter().filter(|other| other.turn == stored.turn);
    let reported = |id: &CallId| of_turn().any(|other| other.message.call_id.as_ref() == Some(id));
    let lacks =
        |asking: &StoredMessage| asking.message.tool_calls.iter().any(|call| !reported(&call.call_id));
    stored.turn < begins
        && (lacks(stored)
            || stored.message.call_id.as_ref().is_some_and(|id| {
                of_turn().any(|asking| {
                    lacks(asking) && asking.message.tool_calls.iter().any(|call| call.call_id == *id)
                })
            }))
}

/// Returns the importance of a message: the higher, the harder it is to reproduce.
fn importance(message: &Message) -> u8 {
    match message.role {
        Role::User => 3,
        Role::System => 2,
        Role::Assistant if message.tool_calls.is_empty() => 1,
        Role::Assistant | Role::Tool => 0,
    }
}

fn window_size(memory: &Memory) -> usize {
    usize::try_from(memory.window_size.max(1)).unwrap_or(usize::MAX)
}

fn tokens(bytes: usize) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX) / BYTES_PER_TOKEN
}

/// Returns the most bytes of a message of an older turn, when long ones are shortened: its share of the
/// window.
fn share(memory: &Memory) -> Option<usize> {
    let tokens = memory.max_history_tokens.filter(|_| memory.strategy == Forgetting::Truncate)?;
    let bytes = usize::try_from(tokens.saturating_mul(BYTES_PER_TOKEN)).unwrap_or(usize::MAX);
    Some((bytes / window_size(memory)).max(LEAST_SHARE))
}

/// Returns a message as the model sees it. Only its text is shortened; calls stay whole.
fn shown(message: &Arc<Message>, old: bool, memory: &Memory) -> Arc<Message> {
    match share(memory).filter(|share| old && message.content.len() > *share) {
        None => Arc::clone(message),
        Some(share) => {
            let mut end = share;
            while !message.content.is_char_boundary(end) {
                end -= 1;
            }
            let content = format!("{} … (shortened)", &message.content[..end]);
            Arc::new(Message { content, parts: Vec::new(), ..(**message).clone() })
        }
    }
}

fn shown_size(message: &Arc<Message>, old: bool, memory: &Memory) -> usize {
    match share(memory).filter(|share| old && message.content.len() > *share) {
        None => size(message),
        Some(_) => size(&shown(message, old, memory)),
    }
}

/// Returns the bytes of everything in a message that a model reads as text. Pictures are counted apart: see
/// [`images`].
pub fn size(message: &Message) -> usize {
    let calls: usize =
        message.tool_calls.iter().map(|call| call.name.len() + call.arguments.to_string().len() + 40).sum();
    // A template may print the ids of calls and outcomes.
    let parts: usize = message.parts.iter().map(part_size).sum();
    let attached = message.attached.as_ref().map_or(0, |attached| attached.size());
    message.content.len().max(parts)
        + calls
        + attached
        + message.call_id.as_ref().map_or(0, |id| id.as_str().len() + 12)
}

fn part_size(part: &ContentPart) -> usize {
    match part {
        ContentPart::Text { text } => text.len(),
        ContentPart::Image { .. } => 0,
        // Each provider adds text of its own around the name, the media type and the content.
        ContentPart::File { name, content, media_type } => name.len() + content.len() + media_type.len() + 64,
    }
}

/// Returns the number of pictures in a message.
pub fn images(message: &Message) -> usize {
    message.parts.iter().filter(|part| part.is_image()).count()
}

/// Returns a message as a line of the transcript.
pub fn line(message: &Message) -> String {
    let who = match message.role {
        Role::User => "User",
        Role::System => "Note",
        Role::Assistant => "Assistant",
        Role::Tool => "Tool",
    };
    let calls =
        message.tool_calls.iter().map(|call| format!(" [calls {} with {}]", call.name, call.arguments));
    format!("{who}: {}{}", message.content, calls.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use turnstone_domain::Timestamp;
    use turnstone_domain::message::{RequestedCall, Summary};

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
            let seen = conversation.messages(&memory);
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
        assert_eq!(conversation.messages(&memory).len(), 3);
    }

    #[test]
    fn the_window_is_bounded_in_tokens_too() {
        let memory = Memory { window_size: 100, max_history_tokens: Some(50), ..Memory::default() };
        let mut conversation = Conversation::default();
        for turn in 0..20 {
            conversation.push(turn, Message::text(Role::Assistant, "x".repeat(100)), &memory);
        }
        assert_eq!(conversation.messages(&memory).len(), 2);
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
        // The store returns the newest rows, and the input separately when it is not among them.
        recall.input = Some(recall.messages[0].clone());
        recall.messages.drain(..6);
        assert_eq!(Conversation::recalled(&recall, &memory, 1).messages(&memory), kept.messages(&memory));
    }

    /// OSSA `importance_weighted`: turns of tool calls are dropped first and whole, and messages of users and
    /// operators stay.
    #[test]
    fn what_says_least_is_left_out_first() {
        let memory =
            Memory { window_size: 4, max_history_tokens: None, strategy: Forgetting::ImportanceWeighted };
        let mut conversation = Conversation::default();
        conversation.push(1, Message::text(Role::User, "question"), &memory);
        conversation.push(1, Message::text(Role::Assistant, "answer"), &memory);
        conversation.push(2, Message::text(Role::System, "a note"), &memory);
        for turn in 3..8 {
            conversation.push(turn, asking(&format!("c{turn}")), &memory);
            conversation.push(turn, Message::tool(format!("c{turn}").into(), "out"), &memory);
            let seen = conversation.messages(&memory);
            assert!(seen.iter().any(|message| message.content == "question"), "turn {turn}: {seen:?}");
            for (at, message) in seen.iter().enumerate().filter(|(_, message)| message.role == Role::Tool) {
                assert_eq!(seen[at - 1].tool_calls.len(), 1, "an outcome without its call in turn {turn}");
                assert_eq!(message.call_id.as_ref(), Some(&seen[at - 1].tool_calls[0].call_id));
            }
        }
        let seen = conversation.messages(&memory);
        let said: Vec<&str> = seen.iter().map(|message| message.content.as_str()).collect();
        assert_eq!(
            said,
            ["question", "answer", "", "out"],
            "the user's turn outlives the note and the calls"
        );
    }

    /// OSSA §4 `truncate`: long messages of older turns are shortened before any is dropped.
    #[test]
    fn truncating_shortens_what_is_old_and_keeps_what_is_new() {
        let memory =
            Memory { window_size: 40, max_history_tokens: Some(2000), strategy: Forgetting::Truncate };
        let mut conversation = Conversation::default();
        conversation.push(1, Message::text(Role::User, "question"), &memory);
        for turn in 1..4 {
            conversation.push(turn, asking(&format!("c{turn}")), &memory);
            conversation.push(turn, Message::tool(format!("c{turn}").into(), "ä".repeat(2_000)), &memory);
        }
        let seen = conversation.messages(&memory);
        assert_eq!(seen.len(), 7, "nothing is left out");
        assert!(seen[2].content.len() < 500 && seen[2].content.ends_with("(shortened)"));
        assert_eq!(seen[6].content.len(), 4_000, "the newest turn is whole");
    }

    /// OSSA §4 `summarize`: messages that do not fit wait for their summary, which then replaces them.
    #[test]
    fn a_summary_takes_the_place_of_whole_turns() {
        let memory = Memory { window_size: 6, max_history_tokens: None, strategy: Forgetting::Summarize };
        let mut kept = Conversation::default();
        let mut recall = Recall::default();
        let mut say = |kept: &mut Conversation, turn: i64, message: Message| {
            kept.push(turn, message.clone(), &memory);
            let seq = i64::try_from(recall.messages.len()).unwrap() + 1;
            recall.messages.push(StoredMessage { seq, turn, message, created_at: Timestamp(0) });
        };
        say(&mut kept, 1, Message::text(Role::User, "question"));
        let mut summaries = 0;
        for turn in 1..12 {
            if let Some(overflow) = kept.overflow(&memory) {
                assert!(overflow.until < turn && overflow.messages.iter().any(|m| !m.tool_calls.is_empty()));
                let summary = Message {
                    summary: Some(Summary { until: overflow.until, tokens_in: 9, tokens_out: 1 }),
                    ..Message::text(Role::System, format!("summary {}", overflow.until))
                };
                say(&mut kept, turn, summary);
                summaries += 1;
                assert!(kept.overflow(&memory).is_none(), "half of the window is free again");
                assert_eq!((kept.summed_up_for(turn), kept.summed_up_for(turn + 1)), ((9, 1), (0, 0)));
            }
            say(&mut kept, turn, asking(&format!("c{turn}")));
            say(&mut kept, turn, Message::tool(format!("c{turn}").into(), "out"));
        }
        let seen = kept.messages(&memory);
        assert!(summaries > 1 && seen[0].content == "question" && seen[1].content.starts_with("summary"));
        assert_eq!(seen.iter().filter(|message| message.summary.is_some()).count(), 1);
        assert_ne!(seen[2].role, Role::Tool);
        assert_eq!(Conversation::recalled(&recall, &memory, 1).messages(&memory), seen, "also after a crash");
    }
}
