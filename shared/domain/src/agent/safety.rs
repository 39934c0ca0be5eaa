//! The filters of an agent: content on its way in, personal data on its way in and out (OSSA `spec.safety`,
//! `spec.security.output_filtering`; RS-08, RS-23).

use crate::message::Message;
use crate::screen::personal;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// The filters of an agent. The default filters nothing (RS-A12).
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Safety {
    /// Inputs of these kinds.
    pub content: Option<ContentRule>,
    /// Personal data in inputs and in everything that leaves the worker.
    pub personal: Option<PersonalRule>,
    /// Personal data in output that leaves the worker.
    pub output: Option<PersonalRule>,
}

/// The rule for content of some kinds.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ContentRule {
    /// The kinds.
    pub categories: Vec<Category>,
    /// The lowest weight that counts.
    pub threshold: Threshold,
    /// The action on a finding.
    pub action: FilterAction,
}

/// The rule for personal data of some kinds.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PersonalRule {
    /// The kinds.
    pub kinds: Vec<PersonalKind>,
    /// The action on a finding.
    pub action: FilterAction,
}

impl PersonalRule {
    /// Returns true if it changes or blocks what it finds.
    #[must_use]
    pub fn changes(&self) -> bool {
        matches!(self.action, FilterAction::Redact | FilterAction::Block)
    }
}

/// The action on a finding of a filter.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum FilterAction {
    /// It is replaced by the name of its kind. Only for personal data.
    Redact,
    /// It is blocked.
    Block,
    /// It passes, and an event records it.
    Warn,
    /// It passes, and the worker's log records it.
    Log,
}

impl FilterAction {
    /// Returns the action of both that lets less pass.
    #[must_use]
    pub fn stricter(self, other: Self) -> Self {
        let weight = |action: Self| match action {
            Self::Log => 0,
            Self::Warn => 1,
            Self::Redact => 2,
            Self::Block => 3,
        };
        if weight(other) > weight(self) { other } else { self }
    }
}

/// A kind of content.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Category {
    /// Contempt for people because of their identity.
    Hate,
    /// Violence against others.
    Violence,
    /// Sexual content.
    Sexual,
    /// Violence against oneself.
    SelfHarm,
    /// Swearing.
    Profanity,
    /// Personal data.
    Pii,
}

/// The weight that a finding needs: a low threshold filters the most.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Threshold {
    /// Mild words count.
    Low,
    /// Plain words count.
    #[default]
    Medium,
    /// Only the worst words count.
    High,
}

/// A kind of personal data that can be recognised by its form.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PersonalKind {
    /// An e-mail address.
    Email,
    /// A telephone number.
    Phone,
    /// A social security number of the United States.
    Ssn,
    /// The number of a payment card.
    CreditCard,
    /// An IP address.
    IpAddress,
}

impl PersonalKind {
    /// All kinds.
    pub const ALL: [Self; 5] = [Self::Email, Self::Phone, Self::Ssn, Self::CreditCard, Self::IpAddress];

    /// Returns the kind as in a manifest.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Email => "email",
            Self::Phone => "phone",
            Self::Ssn => "ssn",
            Self::CreditCard => "credit_card",
            Self::IpAddress => "ip_address",
        }
    }
}

impl Category {
    /// All kinds.
    pub const ALL: [Self; 6] =
        [Self::Hate, Self::Violence, Self::Sexual, Self::SelfHarm, Self::Profanity, Self::Pii];

    /// Returns the kind as in a manifest.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Hate => "hate",
            Self::Violence => "violence",
            Self::Sexual => "sexual",
            Self::SelfHarm => "self-harm",
            Self::Profanity => "profanity",
            Self::Pii => "pii",
        }
    }
}

impl Safety {
    /// Returns the rules for output that leaves the worker.
    pub fn leaving(&self) -> impl Iterator<Item = &PersonalRule> {
        self.personal.iter().chain(&self.output)
    }

    /// Redacts the personal data in a value that may not leave.
    pub fn redact(&self, value: &mut Value) {
        for rule in self.leaving().filter(|rule| rule.changes()) {
            personal::redact(&rule.kinds, value);
        }
    }

    /// Redacts the personal data in a message that may not leave; in the arguments of its calls, too.
    pub fn redact_message(&self, message: &mut Message) {
        for rule in self.leaving().filter(|rule| rule.changes()) {
            personal::redact_message(&rule.kinds, message);
            for call in &mut message.tool_calls {
                personal::redact(&rule.kinds, &mut call.arguments);
            }
        }
    }

    /// Returns the rules that redact, which an agent's delegates keep as well. What blocks is decided by the agent itself: a
    /// delegate that failed would be tried again.
    #[must_use]
    pub fn redactions(&self) -> Self {
        let only =
            |rule: &Option<PersonalRule>| rule.clone().filter(|rule| rule.action == FilterAction::Redact);
        Self { content: None, personal: only(&self.personal), output: only(&self.output) }
    }

    /// Adds the rules of another agent. Where both have a rule, the kinds of both are found, and the
    /// stricter action applies.
    pub fn restrict_by(&mut self, other: &Self) {
        both(&mut self.content, other.content.as_ref(), |own, other| {
            own.categories = union(&own.categories, &other.categories);
            own.threshold = own.threshold.min(other.threshold);
            own.action = own.action.stricter(other.action);
        });
        let personal = |own: &mut PersonalRule, other: &PersonalRule| {
            own.kinds = union(&own.kinds, &other.kinds);
            own.action = own.action.stricter(other.action);
        };
        both(&mut self.personal, other.personal.as_ref(), personal);
        both(&mut self.output, other.output.as_ref(), personal);
    }

    /// Returns true if a text that a model may not see or say is blocked, wherever it comes from.
    #[must_use]
    pub fn blocks(&self) -> bool {
        let content = self.content.iter().map(|rule| rule.action);
        content.chain(self.leaving().map(|rule| rule.action)).any(|action| action == FilterAction::Block)
    }

    /// Returns true if an answer must be complete before any of it may leave, because a filter may change or withhold
    /// it.
    #[must_use]
    pub fn holds_back(&self) -> bool {
        self.leaving().any(PersonalRule::changes)
    }
}

/// Takes over a rule, or joins it with the own one.
fn both<R: Clone>(own: &mut Option<R>, other: Option<&R>, join: impl FnOnce(&mut R, &R)) {
    match (own.as_mut(), other) {
        (Some(own), Some(other)) => join(own, other),
        (None, Some(other)) => *own = Some(other.clone()),
        (_, None) => {}
    }
}

fn union<K: Clone + PartialEq>(own: &[K], other: &[K]) -> Vec<K> {
    let more = other.iter().filter(|kind| !own.contains(kind));
    own.iter().chain(more).cloned().collect()
}
