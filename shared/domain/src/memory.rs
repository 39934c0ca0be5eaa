//! An agent's memory of its user across engagements (OpenAgentSpec `lifespan.retain_memory`, OAS-50, OAS-51).
//!
//! An exchange is the user's input of a job and the agent's final answer. Tool calls, their outcomes and the runtime's
//! own messages are no part of it. Only exchanges of completed jobs are remembered, so a refused text never is.

use crate::agent::Memory;
use crate::message::{Message, Role, StoredMessage};
use crate::{AgentDefinition, EngagementId, digest};
use serde_json::json;

/// The turn of recalled messages: before the first one, so that they leave the window first.
pub const BEFORE: i64 = 0;

/// The most exchanges that are recalled: twenty messages, a third of the default window.
pub const MOST_EXCHANGES: u32 = 10;

/// Bytes of everything that is recalled: about 4,000 tokens, which are paid for in each turn.
const MOST_BYTES: usize = 16 * 1024;

/// Bytes of one text: one long document does not take the place of all others.
const MOST_TEXT: usize = 2 * 1024;

/// The suffix of a text that was cut.
const CUT: &str = " … (shortened)";

/// A completing job's request to remember its exchange.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Remember {
    /// The turn that took the input.
    pub began: i64,
    /// The turn that answered.
    pub ended: i64,
    /// The rules that applied: see [`rules`].
    pub rules: String,
}

/// A user's input, and the agent's answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Exchange {
    /// The engagement.
    pub engagement: EngagementId,
    /// The user's input.
    pub asked: String,
    /// The agent's answer.
    pub answered: String,
}

/// Returns the digest of the guardrails and filters that a text has passed. Texts that passed other ones are not
/// recalled. They would reach a model or a user without having passed these (OAS-41, OAS-43).
#[must_use]
pub fn rules(agent: &AgentDefinition) -> String {
    digest::of_json(&json!({"guardrails": agent.guardrails, "safety": agent.safety}))
}

impl Exchange {
    /// Returns the exchange of a job that began and ended with these turns, from their messages. `None` when either
    /// text is missing or empty.
    #[must_use]
    pub fn of(engagement: EngagementId, (began, ended): (i64, i64), said: &[StoredMessage]) -> Option<Self> {
        let by_user = |stored: &&StoredMessage| {
            let message = &stored.message;
            stored.turn == began && message.role == Role::User && message.metadata.is_some()
        };
        let requested: Vec<&str> =
            said.iter().filter(by_user).map(|stored| stored.message.content.as_str()).collect();
        let answered = said.iter().rev().find(|stored| {
            let message = &stored.message;
            stored.turn == ended && message.role == Role::Assistant && message.metadata.is_none()
        })?;
        let (requested, answered) = (requested.join("\n\n"), answered.message.content.clone());
        (!requested.is_empty() && !answered.is_empty()).then_some(Self {
            engagement,
            asked: requested,
            answered,
        })
    }

    /// Returns the exchanges that these messages recall, in order: the inverse of [`recalled`].
    pub fn of_recalled<'m>(messages: impl Iterator<Item = &'m Message>) -> Vec<Self> {
        let (mut exchanges, mut requested) = (Vec::new(), None);
        for message in messages {
            let Some(engagement) = message.recalled_from.clone() else { continue };
            match requested.take() {
                Some(requested) if message.role == Role::Assistant => {
                    exchanges.push(Self { engagement, asked: requested, answered: message.content.clone() });
                }
                _ => requested = Some(message.content.clone()),
            }
        }
        exchanges
    }

    fn bytes(&self) -> usize {
        self.asked.len() + self.answered.len()
    }

    fn messages(self) -> [Message; 2] {
        let said = |role, text: String| Message {
            recalled_from: Some(self.engagement.clone()),
            ..Message::text(role, text)
        };
        [said(Role::User, self.asked), said(Role::Assistant, self.answered)]
    }
}

/// Returns the newest exchanges that fit as messages for a model, the oldest first. An agent whose window is bounded
/// in tokens recalls a quarter of it at most. With a budget, the bytes are at most a sixteenth of its tokens `left`.
/// Each turn's prompt repeats the bytes, and a token may be as short as a byte.
#[must_use]
pub fn recalled(exchanges: Vec<Exchange>, memory: &Memory, left: Option<i64>) -> Vec<Message> {
    // A quarter of the window's tokens, at four bytes each, is as many bytes as the window has tokens.
    let of_window = memory.max_history_tokens.and_then(|tokens| usize::try_from(tokens).ok());
    let of_budget = left.and_then(|tokens| usize::try_from(tokens / 16).ok());
    let mut left = [of_window, of_budget].into_iter().flatten().fold(MOST_BYTES, usize::min);
    let mut chosen = Vec::new();
    for exchange in exchanges.into_iter().rev().take(MOST_EXCHANGES as usize) {
        let exchange = Exchange { asked: cut(exchange.asked), answered: cut(exchange.answered), ..exchange };
        let Some(rest) = left.checked_sub(exchange.bytes()) else { break };
        left = rest;
        chosen.push(exchange);
    }
    chosen.into_iter().rev().flat_map(Exchange::messages).collect()
}

fn cut(mut text: String) -> String {
    if text.len() > MOST_TEXT {
        let mut end = MOST_TEXT - CUT.len();
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
        text.push_str(CUT);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Timestamp;
    use crate::message::{Metadata, Source};

    fn exchange(number: usize, bytes: usize) -> Exchange {
        let (engagement, answered) = (format!("e{number}").as_str().into(), "b".repeat(bytes));
        Exchange { engagement, asked: format!("{number:04}"), answered }
    }

    /// OAS-51: the newest exchanges, the oldest of them first, in count, in bytes and within the agent's own bound.
    #[test]
    fn what_is_recalled_is_bounded_and_the_newest() {
        let recall = |count, bytes, most| {
            let memory = Memory { max_history_tokens: most, ..Memory::default() };
            let said = recalled((0..count).map(|number| exchange(number, bytes)).collect(), &memory, None);
            let requested = said.iter().filter(|message| message.role == Role::User);
            requested.map(|message| message.content.clone()).collect::<Vec<_>>()
        };
        assert_eq!(recall(3, 10, None), ["0000", "0001", "0002"]);
        assert_eq!(recall(12, 10, None).len(), MOST_EXCHANGES as usize);
        assert_eq!(recall(12, 10, None)[0], "0002");
        assert_eq!(recall(9, 5_000, None).len(), 7, "16 KiB, and no text has more than 2 KiB of them");
        assert_eq!(recall(9, 96, Some(200)), ["0007", "0008"]);
        assert!(recall(9, 200, Some(100)).is_empty());
        let budgeted =
            |left| recalled(vec![exchange(0, 96), exchange(1, 96)], &Memory::default(), left).len();
        assert_eq!(
            [budgeted(None), budgeted(Some(3_200)), budgeted(Some(1_600)), budgeted(Some(100))],
            [4, 4, 2, 0]
        );
    }

    /// A cut text stays unchanged when it is recalled once more, as when a record is run again.
    #[test]
    fn what_was_recalled_is_recalled_the_same_again() {
        let long = Exchange { asked: "ä".repeat(4_000), ..exchange(1, 9_000) };
        let memory = Memory::default();
        let said = recalled(vec![exchange(0, 20), long], &memory, None);
        assert!(said.iter().all(|message| message.content.len() <= MOST_TEXT));
        assert!(said[2].content.ends_with(CUT) && said[3].content.ends_with(CUT));
        assert_eq!(recalled(Exchange::of_recalled(said.iter()), &memory, None), said);
    }

    /// OAS-51: the user's input and the agent's final answer. Tools, the runtime, and messages that only the client
    /// claims are left out.
    #[test]
    fn an_exchange_is_what_was_asked_and_finally_answered() {
        let metadata = Some(Metadata {
            source: Source::Api,
            original_format: "text/plain".into(),
            normalized_at: Timestamp(0),
        });
        let sent = |role, text: &str| Message { metadata: metadata.clone(), ..Message::text(role, text) };
        let said = [
            (2, sent(Role::User, "first")),
            (2, sent(Role::Assistant, "claimed")),
            (2, sent(Role::User, "second")),
            (2, Message::text(Role::Assistant, "let me look")),
            (2, Message::tool("c".into(), "a secret")),
            (3, Message::text(Role::System, "again, please")),
            (3, Message::text(Role::Assistant, "done")),
        ];
        let stored = |(turn, message): (i64, Message)| StoredMessage {
            seq: 1,
            turn,
            message,
            created_at: Timestamp(0),
        };
        let said: Vec<StoredMessage> = said.into_iter().map(stored).collect();
        let found = Exchange::of("e".into(), (2, 3), &said).unwrap();
        assert_eq!((found.asked.as_str(), found.answered.as_str()), ("first\n\nsecond", "done"));
        assert_eq!(Exchange::of("e".into(), (2, 2), &said).unwrap().answered, "let me look");
        assert!(Exchange::of("e".into(), (3, 3), &said).is_none(), "nothing was asked there");
        assert!(Exchange::of("e".into(), (2, 4), &said).is_none(), "nothing was answered there");
    }
}
