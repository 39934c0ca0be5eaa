//! The feed: all events in one order, and the filters of its readers.

use crate::{EngagementId, EventName, JobId, Phase, Timestamp, event};
use serde_json::Value;
use std::fmt;

/// The position of a reader in the feed. Text like `evt_829.4.1.27`, which is opaque to clients.
///
/// It names the commit that wrote an event, the event's stream, and its number there. The id of the event is the same text
/// without the number of the commit: PostgreSQL gives it only after the commit, and SQLite uses the identity itself.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Cursor {
    /// The number of the commit in the order of all commits; 0 until the store has looked it up.
    pub number: i64,
    /// The identity of the commit, which is partly random. 0 names none: the number alone is the position, as in the marks of
    /// the store.
    pub commit: i64,
    /// The stream of the event.
    pub stream: i64,
    /// Its number there.
    pub seq: i64,
}

impl Cursor {
    /// Before every event.
    pub const START: Self = Self { number: 0, commit: 0, stream: 0, seq: 0 };

    /// After every event of this commit and of those before it.
    #[must_use]
    pub fn after_all_of(number: i64, commit: i64) -> Self {
        Self { number, commit, stream: i64::MAX, seq: i64::MAX }
    }

    /// Returns the place in the order of all events. It is complete once the store has looked up the number.
    #[must_use]
    pub fn place(&self) -> (i64, i64, i64) {
        (self.number, self.stream, self.seq)
    }

    /// Returns the id of the event at this position.
    #[must_use]
    pub fn event_id(&self) -> String {
        format!("evt_{}.{}.{}", self.commit, self.stream, self.seq)
    }

    /// Reads a cursor or the id of an event; `None` for anything else.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.strip_prefix("evt_")?.split('.').map(number);
        let (commit, stream, seq) = (parts.next()??, parts.next()??, parts.next()??);
        let number = parts.next().map_or(Some(0), |number| number.filter(|number| *number > 0))?;
        let cursor = Self { number, commit, stream, seq };
        (parts.next().is_none() && (commit > 0 || cursor == Self::START)).then_some(cursor)
    }
}

/// Reads decimal digits.
fn number(text: &str) -> Option<i64> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten()
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.event_id())?;
        if self.number > 0 { write!(f, ".{}", self.number) } else { Ok(()) }
    }
}

/// The position of a reader in one stream, such as that of an engagement. Text like `12.829`, or `12`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct StreamCursor {
    /// The number of the last event that was read; 0 before the first.
    pub seq: i64,
    /// The commit that wrote it. Without it the store can only refuse a number above the newest.
    pub commit: Option<i64>,
}

impl StreamCursor {
    /// After the event with this number.
    #[must_use]
    pub fn after(seq: i64) -> Self {
        Self { seq, commit: None }
    }

    /// Reads the text; `None` for anything that [`fmt::Display`] does not write.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        match text.split_once('.') {
            None => Some(Self::after(number(text)?)),
            Some((seq, commit)) => Some(Self { seq: number(seq)?, commit: Some(number(commit)?) }),
        }
    }
}

impl fmt::Display for StreamCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.commit {
            Some(commit) => write!(f, "{}.{commit}", self.seq),
            None => write!(f, "{}", self.seq),
        }
    }
}

/// An event with the facts about its job that readers of the feed need.
#[derive(Clone, PartialEq, Debug)]
pub struct FeedEvent {
    /// Its place, and its id.
    pub cursor: Cursor,
    /// The name.
    pub name: EventName,
    /// The job it is about; queues, cron entries and workflows have events of their own.
    pub job_id: Option<JobId>,
    /// The job's type.
    pub job_type: Option<String>,
    /// The job's queue.
    pub queue: Option<String>,
    /// The tenant.
    pub tenant: Option<String>,
    /// The engagement, for agent jobs.
    pub engagement_id: Option<EngagementId>,
    /// The agent, for agent jobs.
    pub agent: Option<String>,
    /// The turn it happened in; 0 outside of turns.
    pub turn: i64,
    /// The fields that the name promises.
    pub data: Value,
    /// When it happened.
    pub at: Timestamp,
}

/// The member of an event's data that marks it as imported with its engagement: it happened on another server.
pub const IMPORTED: &str = "imported";

/// The member of a workflow's events that lists the queues of its jobs.
pub const QUEUES: &str = "queues";

/// Members of an event's data that name its subject, when that is no job.
const SUBJECTS: [&str; 6] = ["subject", "job_id", "workflow_id", "cron", "name", "queue"];

impl FeedEvent {
    /// Returns true if this phase was completed.
    #[must_use]
    pub fn completes(&self, phase: Phase) -> bool {
        event::completes(self.name, &self.data, phase)
    }

    /// Returns true if the event was imported with its engagement.
    #[must_use]
    pub fn is_imported(&self) -> bool {
        self.data.get(IMPORTED) == Some(&Value::Bool(true))
    }

    fn said(&self, member: &str) -> Option<&str> {
        self.data.get(member).and_then(Value::as_str)
    }

    /// Returns the subject: the job, else the subject that its data names.
    #[must_use]
    pub fn subject(&self) -> Option<&str> {
        let job = self.job_id.as_ref().map(JobId::shown);
        job.or_else(|| SUBJECTS.iter().find_map(|member| self.said(member)))
    }

    /// Returns the queue of the job, else the one that its data names.
    #[must_use]
    pub fn queue(&self) -> Option<&str> {
        self.queue.as_deref().or_else(|| self.said("queue"))
    }

    /// Returns true if it concerns one of these queues: that of its job, the one that its data names, or one of a
    /// workflow's jobs. Every event concerns an empty list.
    #[must_use]
    pub fn concerns(&self, queues: &[String]) -> bool {
        let of_workflow = || self.data.get(QUEUES).and_then(Value::as_array).into_iter().flatten();
        among(queues, self.queue()) || of_workflow().any(|queue| among(queues, queue.as_str()))
    }

    /// Returns the type of the job, else the one that its data names.
    #[must_use]
    pub fn job_type(&self) -> Option<&str> {
        self.job_type.as_deref().or_else(|| self.said("job_type"))
    }
}

/// A filter of events. An empty list of queues or types matches all.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FeedFilter {
    /// With these names.
    pub names: Vec<EventName>,
    /// Of jobs in these queues, and of workflows with such jobs.
    pub queues: Vec<String>,
    /// Of jobs of these types.
    pub job_types: Vec<String>,
    /// About this job or other subject.
    pub subject: Option<String>,
    /// Of this tenant's jobs; `None` matches all tenants.
    pub tenant: Option<String>,
}

impl FeedFilter {
    /// Returns all events with these names.
    #[must_use]
    pub fn of_names(names: Vec<EventName>) -> Self {
        Self { names, queues: Vec::new(), job_types: Vec::new(), subject: None, tenant: None }
    }

    /// Returns true if the filter matches this event.
    #[must_use]
    pub fn wants(&self, event: &FeedEvent) -> bool {
        self.names.contains(&event.name)
            && event.concerns(&self.queues)
            && among(&self.job_types, event.job_type())
            && self.subject.as_deref().is_none_or(|subject| event.subject() == Some(subject))
            && self.tenant.as_ref().is_none_or(|tenant| event.tenant.as_ref() == Some(tenant))
    }
}

/// Returns true if a value is on a list; an empty list contains everything.
#[must_use]
pub fn among(list: &[String], value: Option<&str>) -> bool {
    list.is_empty() || value.is_some_and(|value| list.iter().any(|item| item == value))
}

/// Returns the names that are shown to readers that name none.
#[must_use]
pub fn names_by_default() -> Vec<EventName> {
    EventName::ALL.iter().copied().filter(|name| !name.inside_turn()).collect()
}

/// Returns true if a name equals a pattern, or has the beginning of one that ends in `*`.
#[must_use]
pub fn is_among(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(prefix) => prefix.ends_with('.') && name.starts_with(prefix),
        None => name == pattern,
    }
}

/// Returns true if a text is valid in a list of names: `*`, or words separated by dots of which the last may be `*`.
#[must_use]
pub fn is_pattern(text: &str) -> bool {
    let word = |part: &str| {
        !part.is_empty()
            && part
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'_' | b'-'))
    };
    let mut parts: Vec<&str> = text.split('.').collect();
    if text.len() > 100 {
        return false;
    }
    if parts.last() == Some(&"*") {
        parts.pop();
    }
    parts.into_iter().all(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_read_back_and_nothing_else_is() {
        let cursor = Cursor { number: 27, commit: i64::MAX, stream: i64::MAX, seq: 3 };
        assert_eq!(Cursor::parse(&cursor.to_string()), Some(cursor));
        assert_eq!(Cursor::parse(&cursor.event_id()), Some(Cursor { number: 0, ..cursor }));
        assert_eq!(Cursor::parse(&Cursor::START.to_string()), Some(Cursor::START));
        for bad in [
            "",
            "evt_",
            "27.4.1",
            "evt_1.2",
            "evt_1.2.3.4.5",
            "evt_1.2.3.0",
            "evt_0.2.3",
            "evt_-1.2.3",
            "evt_+1.2.3",
            "evt_1..3",
            "evt_99999999999999999999.1.1",
        ] {
            assert_eq!(Cursor::parse(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn a_cursor_of_a_stream_is_read_back_and_nothing_else_is() {
        for text in ["0", "12", "12.829"] {
            assert_eq!(StreamCursor::parse(text).map(|cursor| cursor.to_string()).as_deref(), Some(text));
        }
        for bad in ["", "-1", "1.", ".1", "1.2.3", "x"] {
            assert_eq!(StreamCursor::parse(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn patterns_have_a_form() {
        for good in ["*", "job.*", "job.completed", "a.b.*", "job.dead_lettered"] {
            assert!(is_pattern(good), "{good}");
        }
        for bad in
            ["", ".", "job.", "*.job", "job*", "Job.completed", "job completed", "job.**", &"a".repeat(101)]
        {
            assert!(!is_pattern(bad), "{bad}");
        }
    }
}
