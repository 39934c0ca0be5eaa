//! Transforms of the messages that an agent's model reads: summaries of long messages and of long conversations.
//!
//! The conversation stays as it is. A summary is a message of a conversation of its own, so that it is bought once;
//! its `until` is the number of messages, or the message, that it replaces.

use super::machine::Values;
use super::run::{Crew, FlowRun};
use super::template::render;
use super::{agent, node_agent};
use crate::state::conversation::line;
use crate::state::{Claimed, TurnHistory};
use serde_json::json;
use std::sync::Arc;
use turnstone_domain::AgentDefinition;
use turnstone_domain::message::{Message, Role};
use turnstone_specs::agent_spec::model::{LlmConfig, MessageTransform, TransformKind};

/// A summary that is to be made.
pub struct Due {
    /// The instructions of the model.
    pub instructions: String,
    /// The text to sum up.
    pub text: String,
    /// The number of messages in it.
    pub messages: usize,
    /// The conversation that keeps the summary.
    pub thread: String,
    /// The number of messages that it replaces, or the position of the one, from 1.
    pub until: i64,
    llm: Arc<LlmConfig>,
}

/// Returns the next summary that a transform of the turn's agent needs.
pub fn due_summary(claimed: &Claimed, past: &TurnHistory, crew: Option<&Crew>) -> Option<Due> {
    let transforms = agent::transforms(crew);
    if transforms.is_empty() {
        return None;
    }
    let mut messages = past.conversation.messages(&claimed.agent.memory);
    for transform in &transforms {
        let thread = thread(past, transform);
        if let Some((until, text, count)) = missing(past, transform, &thread, &messages) {
            let summary = &transform.summary;
            return Some(Due {
                instructions: summary.summarization_instructions.clone(),
                text,
                messages: count,
                thread,
                until: i64::try_from(until).unwrap_or(i64::MAX),
                llm: Arc::clone(&summary.llm),
            });
        }
        messages = applied(past, transform, &thread, messages);
    }
    None
}

/// Returns the messages as the model reads them, with the summaries that are there.
pub fn transformed(
    past: &TurnHistory,
    crew: Option<&Crew>,
    messages: Vec<Arc<Message>>,
) -> Vec<Arc<Message>> {
    let transforms = agent::transforms(crew);
    let apply = |messages, transform: &Arc<MessageTransform>| {
        applied(past, transform, &thread(past, transform), messages)
    };
    transforms.iter().fold(messages, apply)
}

/// Makes the model of a summary that of the turn; returns the agent to restore.
pub fn begin_summary(claimed: &mut Claimed, run: &mut FlowRun, due: &Due) -> Arc<AgentDefinition> {
    let mut writer = (*claimed.agent).clone();
    node_agent::with_model(&mut writer, &due.llm);
    if let Some(crew) = &mut run.crew {
        crew.summarizer = Some(Arc::clone(&due.llm));
    }
    std::mem::replace(&mut claimed.agent, Arc::new(writer))
}

/// Restores the agent of the turn.
pub fn end_summary(claimed: &mut Claimed, run: &mut FlowRun, own: Arc<AgentDefinition>) {
    claimed.agent = own;
    if let Some(crew) = &mut run.crew {
        crew.summarizer = None;
    }
}

fn thread(past: &TurnHistory, transform: &MessageTransform) -> String {
    format!("{} summarized by {}", past.conversation.thread().unwrap_or("user"), transform.head.id)
}

/// The summaries of a transform, each with what it replaces.
fn known<'t>(past: &'t TurnHistory, thread: &'t str) -> impl Iterator<Item = (usize, &'t str)> {
    let read = |message: &'t Message| {
        let until = usize::try_from(message.summary.as_ref()?.until).ok()?;
        Some((until, message.content.as_str()))
    };
    past.conversation.of_thread(thread).filter_map(read)
}

/// The first summary that is needed and missing: what it replaces, the text, and the number of messages in it.
fn missing(
    past: &TurnHistory,
    transform: &MessageTransform,
    thread: &str,
    messages: &[Arc<Message>],
) -> Option<(usize, String, usize)> {
    match transform.kind {
        TransformKind::MessageSummarizationTransform { max_message_size } => {
            let is_known = |at: usize| known(past, thread).any(|(until, _)| until == at + 1);
            let (at, long) = messages
                .iter()
                .enumerate()
                .find(|(at, message)| is_longer(&message.content, max_message_size) && !is_known(*at))?;
            Some((at + 1, long.content.clone(), 1))
        }
        TransformKind::ConversationSummarizationTransform {
            max_num_messages,
            max_num_characters,
            min_num_messages,
        } => {
            let last = known(past, thread).last();
            let (done, before) =
                last.map_or((0, None), |(until, text)| (until.min(messages.len()), Some(text)));
            let open = &messages[done..];
            let count = open.len() + usize::from(before.is_some());
            let characters: usize = open.iter().map(|message| message.content.chars().count()).sum();
            let exceeds = |most: Option<u64>, now: usize| most.is_some_and(|most| now as u64 > most);
            if !exceeds(max_num_messages, count) && !exceeds(max_num_characters, characters) {
                return None;
            }
            let kept = usize::try_from(min_num_messages).unwrap_or(usize::MAX);
            let mut until = messages.len().saturating_sub(kept);
            // The results of calls stay with the message that asked for them.
            while until > done && messages.get(until).is_some_and(|message| message.role == Role::Tool) {
                until -= 1;
            }
            if until <= done {
                return None;
            }
            let before = before.map(|text| format!("Summary of what came before: {text}"));
            let said: Vec<String> =
                before.into_iter().chain(messages[done..until].iter().map(|message| line(message))).collect();
            Some((until, said.join("\n\n"), until - done))
        }
    }
}

/// The messages with the summaries of one transform.
fn applied(
    past: &TurnHistory,
    transform: &MessageTransform,
    thread: &str,
    messages: Vec<Arc<Message>>,
) -> Vec<Arc<Message>> {
    let shown = |text: &str| {
        render(&transform.summary.template, &Values::from_iter([("summary".to_owned(), json!(text))]))
    };
    match transform.kind {
        TransformKind::MessageSummarizationTransform { max_message_size } => {
            let mut messages = messages;
            for (until, text) in known(past, thread) {
                if let Some(message) = until.checked_sub(1).and_then(|at| messages.get_mut(at))
                    && is_longer(&message.content, max_message_size)
                {
                    let message = Arc::make_mut(message);
                    (message.content, message.parts) = (shown(text), Vec::new());
                }
            }
            messages
        }
        TransformKind::ConversationSummarizationTransform { .. } => match known(past, thread).last() {
            Some((until, text)) if until <= messages.len() => {
                let summary = Arc::new(Message::text(Role::User, shown(text)));
                std::iter::once(summary).chain(messages.into_iter().skip(until)).collect()
            }
            _ => messages,
        },
    }
}

fn is_longer(text: &str, most: u64) -> bool {
    text.chars().count() as u64 > most
}
