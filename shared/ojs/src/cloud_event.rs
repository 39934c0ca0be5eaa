//! Events on the wire: CloudEvents 1.0, as OJS events requires.

use crate::SPEC_VERSION;
use crate::ossa_event::{Form, OssaEvent};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use turnstone_domain::event::TurnIdentity;
use turnstone_domain::feed::FeedEvent;
use turnstone_domain::{JobId, Timestamp};
use utoipa::ToSchema;

/// The `source`: the same for every event of every process.
const SOURCE: &str = "ojs://turnstone";

/// An event in the form of CloudEvents 1.0.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, ToSchema)]
#[schema(example = json!({
    "specversion": "1.0", "id": "evt_1042.17.3", "type": "job.completed", "source": "ojs://turnstone",
    "time": "2026-01-01T00:00:00.000Z", "subject": "019b7601-9a00-7000-8000-000000000001",
    "datacontenttype": "application/json",
    "data": {"job_id": "019b7601-9a00-7000-8000-000000000001", "job_type": "email.send", "queue": "mail", "attempt": 1,
             "duration_ms": 241, "result": {"sent": true}}
}))]
pub struct CloudEvent {
    /// The version of CloudEvents.
    pub specversion: String,
    /// Its id, which no other event ever has: a cursor.
    pub id: String,
    /// One of the names of docs/EVENTS.md, or a type of OSSA.
    #[serde(rename = "type")]
    pub name: String,
    /// This server; of an event of OSSA, the agent and the worker instance.
    pub source: String,
    /// RFC 3339, UTC.
    pub time: String,
    /// The job, else the queue, cron entry or workflow that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// The media type of `data`.
    pub datacontenttype: String,
    /// `job_id`, `job_type`, `queue`, and the fields that the name promises.
    pub data: Map<String, Value>,
}

impl From<&FeedEvent> for CloudEvent {
    /// Returns an event. `data` begins with the job, its type and its queue; the members that the name promises follow.
    fn from(event: &FeedEvent) -> Self {
        let ids = [
            ("job_id", event.job_id.as_ref().map(JobId::shown)),
            ("job_type", event.job_type()),
            ("queue", event.queue()),
            ("engagement_id", event.engagement_id.as_ref().map(|id| id.as_str())),
        ];
        let ids = ids.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?.into())));
        let turn = (event.turn > 0).then(|| ("turn".to_owned(), event.turn.into()));
        let mut data: Map<String, Value> = ids.chain(turn).collect();
        for (name, value) in event.data.as_object().into_iter().flatten() {
            data.entry(name.as_str()).or_insert_with(|| value.clone());
        }
        Self::framed(event.cursor.event_id(), event.name.as_str(), event.subject(), event.at, data)
    }
}

impl CloudEvent {
    /// Returns an event in this form.
    #[must_use]
    pub fn in_form(event: &FeedEvent, form: Form) -> Self {
        match form {
            Form::Own => event.into(),
            Form::Ossa(form) => Self::ossa(event, form),
        }
    }

    /// Returns an event of OSSA: its source is the agent and the worker instance, its subject the session.
    fn ossa(event: &FeedEvent, form: OssaEvent) -> Self {
        let mut reported = Self::from(event);
        let agent = event.agent.as_deref().unwrap_or_default();
        let data = &mut reported.data;
        data.shift_remove("phase");
        let instance = TurnIdentity::deserialize(&event.data).ok().and_then(|identity| identity.instance_id);
        let instance = instance.map(|instance| format!("/instances/{instance}")).unwrap_or_default();
        let turn = data.shift_remove("turn").unwrap_or_default();
        data.insert("turn_number".to_owned(), turn);
        data.insert("agent_id".to_owned(), agent.into());
        let session = event.engagement_id.as_ref().map(ToString::to_string);
        Self {
            name: form.as_str().to_owned(),
            source: format!("/ossa/agents/{agent}{instance}"),
            subject: session.or(reported.subject),
            ..reported
        }
    }

    /// Returns the test event of a webhook. It is not in the feed.
    #[must_use]
    pub fn test(id: &str, webhook: &str, at: Timestamp) -> Self {
        let data = Map::from_iter([("subscription_id".to_owned(), json!(webhook))]);
        Self::framed(id.to_owned(), "webhook.test", Some(webhook), at, data)
    }

    fn framed(
        id: String,
        name: &str,
        subject: Option<&str>,
        at: Timestamp,
        data: Map<String, Value>,
    ) -> Self {
        Self {
            specversion: SPEC_VERSION.to_owned(),
            id,
            name: name.to_owned(),
            source: SOURCE.to_owned(),
            time: at.to_rfc3339(),
            subject: subject.map(str::to_owned),
            datacontenttype: "application/json".to_owned(),
            data,
        }
    }
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
            cursor: Cursor { number: 9, commit: 5, stream: 2, seq: 1 },
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
            json!(CloudEvent::in_form(&event, Form::Ossa(OssaEvent::ToolCalled))),
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
            cursor: Cursor { number: 9, commit: 5, stream: 2, seq: 1 },
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
            json!(CloudEvent::from(&event)),
            json!({"specversion": "1.0", "id": "evt_5.2.1", "type": "job.completed", "source": "ojs://turnstone",
                   "time": "1970-01-01T00:00:00.000Z", "subject": "j", "datacontenttype": "application/json",
                   "data": {"job_id": "j", "job_type": "a.b", "queue": "q", "attempt": 2}})
        );
        event =
            FeedEvent { job_id: None, job_type: None, queue: None, data: json!({"queue": "mail"}), ..event };
        let about = json!(CloudEvent::from(&event));
        assert_eq!((&about["subject"], &about["data"]["queue"]), (&json!("mail"), &json!("mail")));
    }
}
