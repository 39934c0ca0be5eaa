//! Transforms, and the collections in which they cache (AS-57, AS-58).

use crate::agent_spec::component::Component;
use crate::agent_spec::types::Type;
use crate::problem::Problems;
use crate::shape::shortened;
use serde_json::Value;

/// Checks when a conversation is summarised, and the cache of a transform.
pub(super) fn check(component: &Component, problems: &mut Problems) {
    let conversation = component.class.name == "ConversationSummarizationTransform";
    if conversation {
        check_thresholds(component, problems);
    }
    let Some(datastore) = component.one("datastore") else { return };
    let collection = component.text("cache_collection_name");
    let schema = datastore.value("datastore_schema");
    let Some(entity) = schema.get(&collection) else {
        let message = format!(
            "{}: its datastore has no collection `{}`, in which it caches",
            component.shown(),
            shortened(&collection)
        );
        problems.error(component.place("datastore"), "AS-57", message);
        return;
    };
    let needed = ["cache_key", "cache_content", "created_at", "last_used_at", "prefix_size"];
    for name in needed.iter().take(if conversation { 5 } else { 4 }) {
        if entity.get("properties").and_then(|properties| properties.get(name)).is_none() {
            let message = format!(
                "{}: the collection `{}` of its datastore has no property `{name}`",
                component.shown(),
                shortened(&collection)
            );
            problems.error(component.place("datastore"), "AS-57", message);
        }
    }
}

fn check_thresholds(component: &Component, problems: &mut Problems) {
    let characters = component.value("max_num_characters");
    let given = component.held.contains_key("max_num_messages");
    let messages = match component.value("max_num_messages") {
        // The default gives way to a number of characters.
        _ if !given && !characters.is_null() => Value::Null,
        value => value,
    };
    if messages.is_null() == characters.is_null() {
        let message = format!(
            "{} must have one of `max_num_messages` and `max_num_characters`, and the other null",
            component.shown()
        );
        problems.error(component.place("max_num_messages"), "AS-57", message);
    }
    let least = component.value("min_num_messages").as_i64();
    if messages.as_i64().zip(least).is_some_and(|(most, least)| most <= least) {
        let message =
            format!("{}: `max_num_messages` must be more than `min_num_messages`", component.shown());
        problems.error(component.place("max_num_messages"), "AS-57", message);
    }
}

/// The entities of a datastore are objects (AS-58).
pub(super) fn check_schema(component: &Component, problems: &mut Problems) {
    let schema = component.value("datastore_schema");
    for (name, entity) in schema.as_object().into_iter().flatten() {
        let wrong = match Type::of(entity) {
            Ok(Type::Object(_)) => continue,
            Ok(_) => "must be a schema of the type object".to_owned(),
            Err(why) => why,
        };
        let message = format!("{}: the collection `{}`: {wrong}", component.shown(), shortened(name));
        problems.error(component.place("datastore_schema"), "AS-58", message);
    }
}
