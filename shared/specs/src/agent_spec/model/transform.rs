//! Transforms of messages before a model reads them.

use super::build::Builder;
use super::{Datastore, Head, LlmConfig};
use crate::agent_spec::component::Component as Read;
use std::sync::Arc;

/// A transform of messages.
#[derive(Clone, Debug)]
pub struct MessageTransform {
    /// Id, name and description.
    pub head: Head,
    /// The making and caching of summaries.
    pub summary: Summary,
    /// The texts that are summarised.
    pub kind: TransformKind,
}

/// The making and caching of summaries.
#[derive(Clone, Debug)]
pub struct Summary {
    /// The model that writes them.
    pub llm: Arc<LlmConfig>,
    /// The instructions of that model.
    pub summarization_instructions: String,
    /// The text around a summary, a template over `summary`.
    pub template: String,
    /// The store of the cache; `None` for the runtime's own memory.
    pub datastore: Option<Arc<Datastore>>,
    /// The collection in which they are kept.
    pub cache_collection_name: String,
    /// The most entries of the cache; `None` for no limit.
    pub max_cache_size: Option<u64>,
    /// Seconds for which they are kept; `None` for ever.
    pub max_cache_lifetime: Option<u64>,
}

/// The texts that are summarised.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TransformKind {
    /// A long message.
    MessageSummarizationTransform {
        /// Characters beyond which a message is long.
        max_message_size: u64,
    },
    /// A long conversation.
    ConversationSummarizationTransform {
        /// Messages beyond which a conversation is long.
        max_num_messages: Option<u64>,
        /// Characters beyond which it is long.
        max_num_characters: Option<u64>,
        /// The latest messages, which are kept as they are.
        min_num_messages: u64,
    },
}

impl Builder {
    pub(super) fn transform(&mut self, read: &Read) -> Option<MessageTransform> {
        let count = |field: &str| read.value(field).as_u64();
        let (template, kind) = match read.class.name {
            "MessageSummarizationTransform" => (
                read.text("summarized_message_template"),
                TransformKind::MessageSummarizationTransform { max_message_size: count("max_message_size")? },
            ),
            _ => {
                let characters = count("max_num_characters");
                let given = read.held.contains_key("max_num_messages");
                (
                    read.text("summarized_conversation_template"),
                    TransformKind::ConversationSummarizationTransform {
                        max_num_messages: count("max_num_messages").filter(|_| given || characters.is_none()),
                        max_num_characters: characters,
                        min_num_messages: count("min_num_messages")?,
                    },
                )
            }
        };
        Some(MessageTransform {
            head: Head::of(read),
            summary: Summary {
                llm: self.llm(read.one("llm")?)?,
                summarization_instructions: read.text("summarization_instructions"),
                template,
                datastore: match read.one("datastore") {
                    Some(datastore) => Some(self.datastore(datastore)?),
                    None => None,
                },
                cache_collection_name: read.text("cache_collection_name"),
                max_cache_size: count("max_cache_size"),
                max_cache_lifetime: count("max_cache_lifetime"),
            },
            kind,
        })
    }
}
