//! The first version of the language that has everything a component uses (AS-10).

use crate::agent_spec::component::{Component, Held};
use crate::agent_spec::types::Type;
use crate::agent_spec::version::Version;
use serde_json::Value;

/// The version, and what needs it.
pub(super) fn of(component: &Component) -> (Version, String) {
    let class = component.class;
    let mut bound = (class.since, format!("the component `{}`", class.name));
    let mut raise = |version: Version, because: &str| {
        if version > bound.0 {
            bound = (version, because.to_owned());
        }
    };
    for field in class.fields().filter(|field| field.since > class.since) {
        if component.held.get(field.name).is_some_and(|held| is_used(held, &field.default.value())) {
            raise(field.since, &format!("`{}`", field.name));
        }
    }
    match class.name {
        "LlmNode" if component.declared.outputs && !is_one_text(component) => {
            raise(Version::V25_4_2, "outputs other than one string");
        }
        "RemoteTool" | "ApiNode" if !component.value("data").is_object() => {
            raise(Version::V25_4_2, "`data` that is no map");
        }
        "OciGenAiConfig" if component.value("provider") == "XAI" => {
            raise(Version::V26_1_2, "the provider `XAI`")
        }
        _ => {}
    }
    bound
}

fn is_one_text(component: &Component) -> bool {
    matches!(component.outputs.as_slice(), [only] if only.r#type == Type::String)
}

/// Returns whether a field says anything that its absence does not.
fn is_used(held: &Held, default: &Value) -> bool {
    match held {
        Held::Plain(value) => !(value.is_null() || value == default || *value == serde_json::json!({})),
        Held::Many(many) => !many.is_empty(),
        Held::Secret(_) | Held::One(_) => true,
        Held::Pairs(pairs) => !pairs.is_empty(),
        Held::Filter(_) => true,
    }
}
