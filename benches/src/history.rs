//! Engagements with a past: the ground of the benches of assertions.

use serde_json::json;
use turnstone_domain::agent::{Capability, Restriction};
use turnstone_domain::engagement::{Engagement, EngagementObject, User};
use turnstone_domain::policy::backtest::Recorded;
use turnstone_domain::{AgentDefinition, Timestamp};

/// An agent with an assertion before one tool and one behind the other.
#[must_use]
pub fn agent() -> AgentDefinition {
    let asserting = |source: &str| Restriction {
        assertion: Some(source.to_owned()),
        require_review: None,
        ..Restriction::default()
    };
    let book = Capability {
        input_restriction: asserting("recent.book.inputs.price <= 800 && history._total < 100000"),
        ..Capability::named("book")
    };
    let search = Capability {
        output_restriction: asserting("recent.search.outputs.hits > 0"),
        ..Capability::named("search")
    };
    AgentDefinition { capabilities: vec![book, search], ..AgentDefinition::default() }
}

/// An engagement as stored.
#[must_use]
pub fn engagement() -> Engagement {
    let user = User { id: "u-17".to_owned(), email: Some("ada@example.com".to_owned()) };
    Engagement { id: "e".into(), agent: "a".to_owned(), user, started_at: Timestamp(0), turns: 0 }
}

/// The call at this place: every other one is a search, with an answer of about 300 bytes.
#[must_use]
pub fn call(at: usize) -> Recorded {
    let (name, inputs) = if at.is_multiple_of(2) {
        ("search", json!({"query": format!("a flight to place {at}"), "page": at % 7}))
    } else {
        ("book", json!({"price": 100 + at % 700, "seats": [1, 2]}))
    };
    let outputs = json!({"hits": 3, "note": "a sentence that is as long as those of tools. ".repeat(6)});
    Recorded { name: name.to_owned(), inputs, was_made: true, outputs: Some(outputs) }
}

/// So many calls in order.
#[must_use]
pub fn calls(count: usize) -> Vec<Recorded> {
    (0..count).map(call).collect()
}

/// The Engagement object after so many calls.
#[must_use]
pub fn object(agent: &AgentDefinition, count: usize) -> EngagementObject {
    let mut object = EngagementObject::begin(&engagement(), agent);
    for call in calls(count) {
        object.record(&call.name, call.inputs, call.outputs.unwrap_or_default());
    }
    object
}
