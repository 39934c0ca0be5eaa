//! Events on the wire: CloudEvents 1.0, as OJS events asks.

use crate::SPEC_VERSION;
use serde_json::{Map, Value, json};
use turnstone_domain::Timestamp;
use turnstone_domain::feed::FeedEvent;

/// Who tells: the same for every event of every process.
const SOURCE: &str = "ojs://turnstone";

/// An event. `data` begins with the job, its type and its queue; the members that the name promises follow.
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

/// What a webhook is sent to see whether it works. It is no event: it is not in the feed.
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
    use turnstone_domain::{EventName, JobId};

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
