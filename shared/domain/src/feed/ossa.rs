//! The nine events of OSSA (RS-35, RS-49): forms of events that are stored anyway.

use super::{FeedEvent, is_among};
use crate::event::{DelegationEnd, DelegationRole, DelegationStart, EventBody};
use crate::{EventName, Phase};

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

impl OssaEvent {
    /// Returns the form of an event in OSSA; `None` when OSSA has none.
    #[must_use]
    pub fn of(event: &FeedEvent) -> Option<Self> {
        event.engagement_id.as_ref()?;
        let of_name = || Self::ALL.iter().copied().find(|form| form.is_form_of(event.name));
        match EventBody::read(event.name, &event.data).ok()? {
            EventBody::PhaseCompleted(done) => match done.phase {
                Phase::Init => Some(Self::TurnStarted),
                Phase::Emit if done.failed.is_none() => Some(Self::TurnCompleted),
                _ => None,
            },
            EventBody::JobFailed(_) if event.turn == 0 => None,
            EventBody::DelegationStarted(DelegationStart { role, .. })
            | EventBody::DelegationCompleted(DelegationEnd { role, .. }) => {
                of_name().filter(|_| role == DelegationRole::Parent)
            }
            _ => of_name(),
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
