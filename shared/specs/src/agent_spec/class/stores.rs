//! Datastores, and the transforms that cache in them.

use super::super::version::Version::V26_1_2;
use super::{COUNT, Class, Default, Family, Field, Io, Kind};
use crate::shape::Shape;

const fn class(
    name: &'static str,
    families: &'static [Family],
    fields: &'static [&'static [Field]],
) -> Class {
    Class { name, families, since: V26_1_2, io: Io::None, fields }
}

pub(super) static CLASSES: &[Class] = &[
    class("InMemoryCollectionDatastore", &[Family::Datastore], &[SCHEMA]),
    class(
        "OracleDatabaseDatastore",
        &[Family::Datastore],
        &[SCHEMA, &[Field::new("connection_config", Kind::One(Family::OracleDatabaseConnectionConfig))]],
    ),
    class(
        "PostgresDatabaseDatastore",
        &[Family::Datastore],
        &[SCHEMA, &[Field::new("connection_config", Kind::One(Family::PostgresDatabaseConnectionConfig))]],
    ),
    class("TlsOracleDatabaseConnectionConfig", &[Family::OracleDatabaseConnectionConfig], &[ORACLE]),
    class(
        "MTlsOracleDatabaseConnectionConfig",
        &[Family::OracleDatabaseConnectionConfig],
        &[ORACLE, &[
            Field::new("wallet_location", Kind::Secret(Shape::Text)),
            Field::new("wallet_password", Kind::Secret(Shape::Text)),
        ]],
    ),
    class(
        "TlsPostgresDatabaseConnectionConfig",
        &[Family::PostgresDatabaseConnectionConfig],
        &[&[
            Field::new("user", Kind::Secret(Shape::Text)),
            Field::new("password", Kind::Secret(Shape::Text)),
            Field::plain("url", Shape::Text),
            Field::plain(
                "sslmode",
                Shape::OneOf(&["disable", "allow", "prefer", "require", "verify-ca", "verify-full"]),
            )
            .or(Default::Text("require")),
            Field::plain("sslcert", Shape::Text).or_null(),
            Field::new("sslkey", Kind::Secret(Shape::Text)).or_null(),
            Field::plain("sslrootcert", Shape::Text).or_null(),
            Field::plain("sslcrl", Shape::Text).or_null(),
        ]],
    ),
    class(
        "MessageSummarizationTransform",
        &[Family::MessageTransform],
        &[&[
            Field::new("llm", Kind::One(Family::LlmConfig)),
            Field::plain("max_message_size", COUNT).or(Default::Integer(20_000)),
            Field::plain("summarization_instructions", Shape::Text).or(Default::Text(
                "Summarize this message. Keep what matters, be brief: the summary replaces the message.",
            )),
            Field::plain("summarized_message_template", Shape::Text)
                .or(Default::Text("Summarized message: {{summary}}")),
            max_cache_size(),
            max_cache_lifetime(),
            Field::plain("cache_collection_name", Shape::Text).or(Default::Text("summarized_messages_cache")),
            Field::new("datastore", Kind::One(Family::Datastore)).or_null(),
        ]],
    ),
    class(
        "ConversationSummarizationTransform",
        &[Family::MessageTransform],
        &[&[
            Field::new("llm", Kind::One(Family::LlmConfig)),
            Field::plain("max_num_messages", COUNT).or_null().or(Default::Integer(50)),
            Field::plain("max_num_characters", COUNT).or_null(),
            Field::plain("min_num_messages", COUNT).or(Default::Integer(10)),
            Field::plain("summarization_instructions", Shape::Text).or(Default::Text(
                "Summarize this conversation. Keep what matters, be brief: the summary replaces the messages.",
            )),
            Field::plain("summarized_conversation_template", Shape::Text)
                .or(Default::Text("Summarized conversation: {{summary}}")),
            max_cache_size(),
            max_cache_lifetime(),
            Field::plain("cache_collection_name", Shape::Text)
                .or(Default::Text("summarized_conversations_cache")),
            Field::new("datastore", Kind::One(Family::Datastore)).or_null(),
        ]],
    ),
];

const SCHEMA: &[Field] = &[Field::new("datastore_schema", Kind::Entities)];

const ORACLE: &[Field] = &[
    Field::new("user", Kind::Secret(Shape::Text)),
    Field::new("password", Kind::Secret(Shape::Text)),
    Field::new("dsn", Kind::Secret(Shape::Text)),
    Field::plain("config_dir", Shape::Text).or_null(),
    Field::plain("protocol", Shape::OneOf(&["tcp", "tcps"])).or(Default::Text("tcps")),
];

const fn max_cache_size() -> Field {
    Field::plain("max_cache_size", COUNT).or_null().or(Default::Integer(10_000))
}

const fn max_cache_lifetime() -> Field {
    Field::plain("max_cache_lifetime", COUNT).or_null().or(Default::Integer(14_400))
}
