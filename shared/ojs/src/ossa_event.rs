//! The nine events of OSSA (RS-35, RS-49): forms of events that are stored anyway, and the patterns that request them.

use serde::Deserialize;
use serde::de::IgnoredAny;
use turnstone_domain::event::DelegationRole;
use turnstone_domain::feed::{FeedEvent, is_among};
use turnstone_domain::{EventName, Phase};

macro_rules! forms {
    ($($(#[doc = $doc:literal])+ $variant:ident = $name:literal of $stored:ident;)+) => {
        /// An event as OSSA 0.2.9 names it.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum OssaEvent {
            $($(#[doc = $doc])+ $variant,)+
        }

        impl OssaEvent {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// Returns the `type` of the CloudEvent.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }

            fn stored(self) -> EventName {
                match self { $(Self::$variant => EventName::$stored),+ }
            }

            /// Returns the meaning, for the documentation.
            #[must_use]
            pub fn meaning(self) -> &'static str {
                match self { $(Self::$variant => concat!($($doc),+)),+ }
            }
        }
    };
}

forms! {
    /// A turn began.
    TurnStarted = "io.ossa.agent.turn.started" of PhaseCompleted;
    /// A turn went through all of its phases, and its outcome is no failure.
    TurnCompleted = "io.ossa.agent.turn.completed" of PhaseCompleted;
    /// An attempt of a job failed in this turn.
    TurnFailed = "io.ossa.agent.turn.failed" of JobFailed;
    /// A call is sent to its tool.
    ToolCalled = "io.ossa.tool.called" of ToolCalled;
    /// A tool answered.
    ToolCompleted = "io.ossa.tool.completed" of ToolCompleted;
    /// A tool failed, or its call was refused.
    ToolFailed = "io.ossa.tool.failed" of ToolFailed;
    /// State changes of a turn are committed.
    StateChanged = "io.ossa.state.changed" of StateChanged;
    /// Another agent was called.
    DelegationStarted = "io.ossa.delegation.started" of DelegationStarted;
    /// That agent has ended.
    DelegationCompleted = "io.ossa.delegation.completed" of DelegationCompleted;
}

/// The fields of an event's data that decide about its form. The others are not read, because earlier versions wrote other ones.
#[derive(Default, Deserialize)]
struct Marks {
    failed: Option<IgnoredAny>,
    role: Option<DelegationRole>,
}

impl OssaEvent {
    /// Returns the form of an event in OSSA; `None` when OSSA has none.
    #[must_use]
    pub fn of(event: &FeedEvent) -> Option<Self> {
        event.engagement_id.as_ref()?;
        let marks = || Marks::deserialize(&event.data).unwrap_or_default();
        match event.name {
            EventName::PhaseCompleted if event.completes(Phase::Init) => Some(Self::TurnStarted),
            EventName::PhaseCompleted => {
                (event.completes(Phase::Emit) && marks().failed.is_none()).then_some(Self::TurnCompleted)
            }
            EventName::JobFailed if event.turn == 0 => None,
            EventName::DelegationStarted | EventName::DelegationCompleted
                if marks().role != Some(DelegationRole::Parent) =>
            {
                None
            }
            name => Self::ALL.iter().copied().find(|form| form.is_form_of(name)),
        }
    }

    /// Returns true if events of this name may have this form.
    #[must_use]
    pub fn is_form_of(self, name: EventName) -> bool {
        self.stored() == name
    }

    /// Returns true if a pattern matches it.
    #[must_use]
    pub fn matches(self, pattern: &str) -> bool {
        pattern.starts_with("io.") && is_among(pattern, self.as_str())
    }
}

/// Returns the names that match patterns. `*` matches the names that are shown by default. `tool.*` matches every name
/// with that beginning, shown by default or not; anything else matches itself. The types of [`OssaEvent`] match the
/// events that they are a form of.
#[must_use]
pub fn names_matching<'a>(patterns: impl IntoIterator<Item = &'a str> + Clone) -> Vec<EventName> {
    let wanted = |name: &EventName| patterns.clone().into_iter().any(|pattern| matches(pattern, *name));
    EventName::ALL.iter().copied().filter(wanted).collect()
}

fn matches(pattern: &str, name: EventName) -> bool {
    if OssaEvent::ALL.iter().any(|form| form.is_form_of(name) && form.matches(pattern)) {
        return true;
    }
    match pattern.strip_suffix('*') {
        Some("") => !name.inside_turn(),
        _ => is_among(pattern, name.as_str()),
    }
}

/// The form in which a reader receives an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// Under its own name.
    Own,
    /// As an event of OSSA.
    Ossa(OssaEvent),
}

/// Returns the form in which a reader with these patterns receives an event; `None` when no pattern matches. An event
/// that is requested under both of its names is sent once, as OSSA's.
#[must_use]
pub fn form<'a>(patterns: impl IntoIterator<Item = &'a str> + Clone, event: &FeedEvent) -> Option<Form> {
    let any = |holds: &dyn Fn(&str) -> bool| patterns.clone().into_iter().any(holds);
    if any(&|pattern| pattern.starts_with("io."))
        && let Some(form) = OssaEvent::of(event)
        && any(&|pattern| form.matches(pattern))
    {
        return Some(Form::Ossa(form));
    }
    let own = |pattern: &str| match pattern {
        "*" => !event.name.inside_turn(),
        pattern => is_among(pattern, event.name.as_str()),
    };
    any(&own).then_some(Form::Own)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;
    use turnstone_domain::feed::{Cursor, names_by_default};
    use turnstone_domain::{EngagementId, Timestamp};

    #[test]
    fn patterns_stand_for_names() {
        let queued = names_matching(["job.*"]);
        assert!(queued.contains(&EventName::JobEnqueued) && !queued.contains(&EventName::ReviewOpened));
        assert_eq!(names_matching(["*"]), names_by_default());
        assert!(!names_by_default().contains(&EventName::PhaseCompleted));
        assert!(names_matching(["*", "phase.*"]).contains(&EventName::PhaseCompleted));
        assert_eq!(names_matching(["tool.called", "no.such"]), [EventName::ToolCalled]);
        assert_eq!(names_matching(["job*"]), [], "a star matches whole words only");
    }

    /// RS-35: the types of OSSA are requested by their names.
    #[test]
    fn events_of_ossa_are_forms_of_stored_ones() {
        let names = names_matching(["io.ossa.tool.*"]);
        assert_eq!(names, [EventName::ToolCalled, EventName::ToolCompleted, EventName::ToolFailed]);
        assert_eq!(names_matching(["io.ossa.agent.turn.completed"]), [EventName::PhaseCompleted]);
        let event = |name, data: Value| FeedEvent {
            cursor: Cursor::START,
            name,
            job_id: None,
            job_type: None,
            queue: None,
            tenant: None,
            engagement_id: Some(EngagementId::from("e")),
            agent: Some("desk".to_owned()),
            turn: 1,
            data,
            at: Timestamp(0),
        };
        let completed = |phase: &str| {
            event(EventName::PhaseCompleted, serde_json::json!({"phase": phase, "duration_ms": 1}))
        };
        assert_eq!(form(["io.ossa.*"], &completed("init")), Some(Form::Ossa(OssaEvent::TurnStarted)));
        assert_eq!(form(["io.ossa.*"], &completed("emit")), Some(Form::Ossa(OssaEvent::TurnCompleted)));
        assert_eq!(form(["io.ossa.*"], &completed("norm")), None);
        assert_eq!(form(["io.ossa.*", "phase.*"], &completed("norm")), Some(Form::Own));
        let mut failed = completed("emit");
        failed.data["failed"] = true.into();
        assert_eq!(form(["io.ossa.*"], &failed), None, "turn.failed is published instead");
        assert_eq!(form(["*"], &completed("emit")), None);
        let child = event(EventName::DelegationStarted, serde_json::json!({"role": "child"}));
        assert_eq!(form(["io.ossa.*"], &child), None, "it is published in the parent's stream");
        let parent = event(EventName::DelegationStarted, serde_json::json!({"role": "parent"}));
        assert_eq!(form(["io.ossa.*"], &parent), Some(Form::Ossa(OssaEvent::DelegationStarted)));
    }

    /// RS-35: what OSSA demands of an event is in its stored form.
    #[test]
    fn stored_events_name_their_turn() {
        assert!(OssaEvent::ALL.iter().all(|form| form.stored().names_turn()));
    }
}
