//! An agent as reviewer (OAS-30, OAS-31): it is asked in an engagement of its own, with the whole Engagement object as its
//! input, and answers with a verdict. Anything that is no verdict confirms nothing.
//!
//! Its engagement is not part of the history of the one that it is asked about, counts in that one's depth and budget, and
//! the parked job goes on when it has ended. The question stands in the inbox like any other; the store answers it with what
//! the engagement ended with.

use super::call::{self, Call};
use super::context;
use crate::turn::state::Turn;
use crate::turn::stop::Stop;
use crate::turn::trace;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use turnstone_domain::agent::delegation::DelegationMode;
use turnstone_domain::agent::errors::Contact;
use turnstone_domain::error::{FailureKind, OssaCode};
use turnstone_domain::review::{NewReview, ReviewKind, call_of_review};
use turnstone_domain::{AgentDefinition, EngagementId, JobError, JobId, NewChild, RawJson, Wait};

/// How an agent is named for sure.
const PREFIX: &str = "oagent://";

/// The agents that review calls of this one, by the word in its document; `None` for one that is not there.
pub type Reviewers = BTreeMap<String, Option<Arc<AgentDefinition>>>;

/// The name that a reviewer has if it is an agent.
pub fn agent_name(reviewer: &str) -> &str {
    reviewer.strip_prefix(PREFIX).unwrap_or(reviewer)
}

/// The word of [`Reviewers`] for a contact that is an agent; `None` for a person.
pub fn supervisor(contact: &Contact) -> Option<String> {
    if contact.target.starts_with(PREFIX) {
        return Some(contact.target.clone());
    }
    (contact.supervisor && !contact.target.is_empty()).then(|| format!("{PREFIX}{}", contact.target))
}

/// The words in an agent's document that may stand for an agent that decides.
pub fn words(agent: &AgentDefinition) -> Vec<String> {
    let restrictions = agent
        .capabilities
        .iter()
        .flat_map(|capability| [&capability.input_restriction, &capability.output_restriction]);
    let reviewers = restrictions.filter_map(|restriction| restriction.require_review.clone());
    let contacts = OssaCode::ALL.into_iter().filter_map(|code| agent.errors.contact(code));
    let supervisors = contacts.filter_map(|contact| supervisor(&contact));
    reviewers.chain(supervisors).collect()
}

/// The reviewers of an agent's document that are agents.
pub fn among(agent: &AgentDefinition, found: &BTreeMap<String, Arc<AgentDefinition>>) -> Reviewers {
    let known = words(agent).into_iter().map(|word| {
        let agent = found.get(agent_name(&word)).cloned();
        (word, agent)
    });
    // A user may have any other name; an agent that is named for sure and is not there can confirm nothing.
    known.filter(|(word, agent)| agent.is_some() || word.starts_with(PREFIX)).collect()
}

/// Asks the agent that the review names, and parks until it has answered or its time is over.
pub fn ask(turn: &mut Turn, review: NewReview, text: String) -> Stop {
    let reviewer = review.reviewer.as_str();
    let Some(agent) = turn.reviewers.get(reviewer).cloned().flatten() else {
        let message = format!("the reviewer `{reviewer}` is not on this server");
        return JobError::new(FailureKind::Policy, message).with("oas_rule", "OAS-31").into();
    };
    let most = i64::from(turn.agent.limits.max_delegation_depth);
    if turn.depth + 1 > most {
        let message = format!(
            "the reviewer `{reviewer}` was not asked: it would be {} deep, and this agent may delegate to a depth of {most}",
            turn.depth + 1
        );
        let error = JobError::new(FailureKind::DelegationDepth, message).with("oas_rule", "OAS-32");
        return JobError { retryable: false, ..error }.into();
    }
    let span = trace::handoff(&agent.name, DelegationMode::Supervisor.as_str());
    let meta = context::meta(turn, None, &agent.name, &span);
    let agent = (*agent).clone().working_for(&turn.agent);
    let engagement = EngagementId(turn.deps.ids.next());
    let left_ms = review.deadline_at.map(|deadline| deadline.since(turn.deps.clock.now()).max(1));
    let child = NewChild {
        job: JobId(turn.deps.ids.next()),
        engagement: engagement.clone(),
        agent: Box::new(agent),
        call_id: call_of_review(&review.call_id, review.kind),
        turn: review.turn,
        mode: DelegationMode::Supervisor,
        args: RawJson::of(&json!([text])),
        meta,
        timeout_ms: left_ms,
        review: Some(Box::new(NewReview { asked: Some(engagement), ..review })),
    };
    Stop::Park(Box::new(Wait::Children(vec![child])))
}

/// What the reviewer of a call is asked.
pub fn input(call: &Call, kind: ReviewKind, question: &Value) -> String {
    let what = match kind {
        ReviewKind::Output => "may use the result of its call of",
        _ => "may call",
    };
    format!(
        "You review another agent. Decide whether it {what} `{}`. Answer with one JSON object and nothing else: \
         {{\"approve\": true or false, \"reason\": \"one sentence\"}}.\n\n{question}",
        call.asked.name
    )
}

/// Journals the call that is asked about, so that it is known when the reviewer has answered.
pub fn plan(turn: &mut Turn, call: &Call, idempotent: bool) {
    if call.journalled.is_none() {
        let intent = call::intend(turn, call, idempotent, false);
        turn.pending().tool_calls.push(intent);
    }
}
