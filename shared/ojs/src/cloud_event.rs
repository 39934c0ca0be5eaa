//! Events on the wire: CloudEvents 1.0, as OJS events requires.

use crate::SPEC_VERSION;
use serde::Deserialize as _;
use serde_json::{Map, Value, json};
use turnstone_domain::Timestamp;
use turnstone_domain::event::TurnIdentity;
use turnstone_domain::feed::{FeedEvent, Form, OssaEvent};

/// The `source`: the same for every event of every process.
const SOURCE: &str = "ojs://turnstone";

/// Returns an event. `data` begins with the job, its type and its queue; the members that the name promises follow.
#[must_use]
pub fn cloud_event(event: &FeedEvent) -> Map<String, Value> {
    let mut data = Map::new();
    let mut put = |name: &str, value: Option<&str>| {
        value.map(|value| data.insert(name.to_owned(), value.into()));
    };
    put("job_id", event.job_id.as_ref().map(|id| id.as_str()));
    put("job_type", event.job_type());
    put("queue", event.queue());
    put("engagement_id", event.engagement_id.as_ref().map(|id| id.as_str()));
    if event.turn > 0 {
        data.insert("turn".to_owned(), event.turn.into());
    }
    for (name, value) in event.data.as_object().into_iter().flatten() {
        data.entry(name.as_str()).or_insert_with(|| value.clone());
    }
    frame(&event.cursor.to_string(), event.name.as_str(), event.subject(), event.at, data)
}

/// Returns the `type` of an event in this form.
#[must_use]
pub fn type_of(event: &FeedEvent, form: Form) -> &'static str {
    match form {
        Form::Own => event.name.as_str(),
        Form::Ossa(form) => form.as_str(),
    }
}

/// Returns an event in this form.
#[must_use]
pub fn in_form(event: &FeedEvent, form: Form) -> Map<String, Value> {
    match form {
        Form::Own => cloud_event(event),
        Form::Ossa(form) => ossa_event(event, form),
    }
}

/// Returns an event of OSSA: its source is the agent and the worker instance, its subject the session.
fn ossa_event(event: &FeedEvent, form: OssaEvent) -> Map<String, Value> {
    let mut reported = cloud_event(event);
    let agent = event.agent.as_deref().unwrap_or_default();
    let mut source = format!("/ossa/agents/{agent}");
    if let Some(Value::Object(data)) = reported.get_mut("data") {
        data.shift_remove("phase");
        if let Ok(TurnIdentity { instance_id: Some(instance), .. }) = TurnIdentity::deserialize(&event.data) {
            source.push_str("/instances/");
            source.push_str(&instance);
        }
        let turn = data.shift_remove("turn").unwrap_or_default();
        data.insert("turn_number".to_owned(), turn);
        data.insert("agent_id".to_owned(), agent.into());
    }
    reported.insert("type".to_owned(), form.as_str().into());
    reported.insert("source".to_owned(), source.into());
    if let Some(session) = &event.engagement_id {
        reported.insert("subject".to_owned(), session.as_str().into());
    }
    reported
}

/// Returns the test event of a webhook. It is not in the feed.
#[must_use]
pub fn test_event(id: &str, webhook: &str, at: Timestamp) -> Map<String, Value> {
    let mut data = Map::new();
    data.insert("subscription_id".to_owned(), webhook.into());
    frame(id, "webhook.test", Some(webhook), at, data)
}

fn frame(
    id: &str,
    name: &str,
    subject: Option<&str>,
    at: Timestamp,
    data: Map<String, Value>,
) -> Map<String, Value> {
    let members = [
        ("specversion", json!(SPEC_VERSION)),
        ("id", json!(id)),
        ("type", json!(name)),
        ("source", json!(SOURCE)),
        ("time", json!(at.to_rfc3339())),
        ("subject", json!(subject)),
        ("datacontenttype", json!("application/json")),
        ("data", Value::Object(data)),
    ];
    members
        .into_iter()
        .filter(|(_, value)| !value.is_null())
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use turnstone_domain::feed::Cursor;
    use turnstone_domain::{EngagementId, EventName, JobId};

    /// RS-35: an event of OSSA is a CloudEvent 1.0 of its agent about its session.
    #[test]
    fn an_event_of_ossa_names_agent_instance_and_session() {
        let event = FeedEvent {
            cursor: Cursor { tx: 5, stream: 2, seq: 1 },
            name: EventName::ToolCalled,
            job_id: Some(JobId::from("j")),
            job_type: Some("a.b".to_owned()),
            queue: Some("q".to_owned()),
            tenant: None,
            engagement_id: Some(EngagementId::from("e")),
            agent: Some("desk".to_owned()),
            turn: 3,
            data: json!({"call_id": "c", "interaction_id": "i", "instance_id": "w"}),
            at: Timestamp(0),
        };
        assert_eq!(
            Value::Object(in_form(&event, Form::Ossa(OssaEvent::ToolCalled))),
            json!({"specversion": "1.0", "id": "evt_5.2.1", "type": "io.ossa.tool.called",
                   "source": "/ossa/agents/desk/instances/w", "time": "1970-01-01T00:00:00.000Z", "subject": "e",
                   "datacontenttype": "application/json",
                   "data": {"job_id": "j", "job_type": "a.b", "queue": "q", "engagement_id": "e", "call_id": "c",
                            "interaction_id": "i", "instance_id": "w", "turn_number": 3, "agent_id": "desk"}})
        );
    }

    #[test]
    fn an_event_says_what_it_is_about() {
        let mut event = FeedEvent {
            cursor: Cursor { tx: 5, stream: 2, seq: 1 },
            name: EventName::JobCompleted,
            job_id: Some(JobId::from("j")),
            job_type: Some("a.b".to_owned()),
            queue: Some("q".to_owned()),
            tenant: None,
            engagement_id: None,
            agent: None,
            turn: 0,
            data: json!({"attempt": 2, "job_id": "another"}),
            at: Timestamp(0),
        };
        assert_eq!(
            Value::Object(cloud_event(&event)),
            json!({"specversion": "1.0", "id": "evt_5.2.1", "type": "job.completed", "source": "ojs://turnstone",
                   "time": "1970-01-01T00:00:00.000Z", "subject": "j", "datacontenttype": "application/json",
                   "data": {"job_id": "j", "job_type": "a.b", "queue": "q", "attempt": 2}})
        );
        event =
            FeedEvent { job_id: None, job_type: None, queue: None, data: json!({"queue": "mail"}), ..event };
        let about = cloud_event(&event);
        assert_eq!((&about["subject"], &about["data"]["queue"]), (&json!("mail"), &json!("mail")));
    }
}
