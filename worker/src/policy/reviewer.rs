//! An agent as reviewer (OAS-30, OAS-31). It runs in an engagement of its own, receives the whole Engagement
//! object as its input, and answers with a verdict. Any other answer confirms nothing.
//!
//! Its engagement is not part of the history of the reviewed one, but counts in its depth and budget. The
//! parked job resumes when it has ended. The question is in the inbox like any other; the store answers it
//! with the result of the reviewer's engagement.

use crate::state::claimed::Reviewers;
use crate::state::journal::Call;
use crate::state::{Outbox, Stop, TurnHistory, trace};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use turnstone_domain::agent::delegation::DelegationMode;
use turnstone_domain::agent::errors::Contact;
use turnstone_domain::error::{ErrorClass, FailureKind};
use turnstone_domain::review::{NewReview, ReviewKind, call_of_review};
use turnstone_domain::{AgentDefinition, JobError, NewChild, RawJson, Wait};

/// The prefix that marks a name as an agent's.
const PREFIX: &str = "oagent://";

/// Returns the name under which a reviewer would be registered as an agent.
pub fn agent_name(reviewer: &str) -> &str {
    reviewer.strip_prefix(PREFIX).unwrap_or(reviewer)
}

/// Returns the word of [`Reviewers`] for a contact that is an agent; `None` for a person.
pub fn supervisor(contact: &Contact) -> Option<String> {
    if contact.target.starts_with(PREFIX) {
        return Some(contact.target.clone());
    }
    (contact.supervisor && !contact.target.is_empty()).then(|| format!("{PREFIX}{}", contact.target))
}

/// Returns the words in an agent's document that may name an agent that decides.
pub fn words(agent: &AgentDefinition) -> Vec<String> {
    let restrictions = agent
        .capabilities
        .iter()
        .flat_map(|capability| [&capability.input_restriction, &capability.output_restriction]);
    let reviewers = restrictions.filter_map(|restriction| restriction.require_review.clone());
    let contacts = ErrorClass::ALL.into_iter().filter_map(|code| agent.errors.contact(code));
    let supervisors = contacts.filter_map(|contact| supervisor(&contact));
    reviewers.chain(supervisors).collect()
}

/// Returns the reviewers in an agent's document that are agents.
pub fn among(agent: &AgentDefinition, found: &BTreeMap<String, Arc<AgentDefinition>>) -> Reviewers {
    let known = words(agent).into_iter().map(|word| {
        let agent = found.get(agent_name(&word)).cloned();
        (word, agent)
    });
    // A name without the prefix is a person's, so that no agent of that name approves instead. Without an
    // agent of its name, a reviewer with the prefix can confirm nothing.
    known.filter(|(word, _)| word.starts_with(PREFIX)).collect()
}

/// Asks the agent that the review names, and parks until it has answered or the deadline has passed.
pub fn ask(past: &TurnHistory, outbox: &Outbox, review: NewReview, text: String) -> Stop {
    let reviewer = review.reviewer.as_str();
    let Some(agent) = outbox.claimed.reviewers.get(reviewer).cloned().flatten() else {
        let message = format!("the reviewer `{reviewer}` is not on this server");
        return JobError::new(FailureKind::Policy, message).with("oas_rule", "OAS-31").into();
    };
    if let Some(why) = outbox.claimed.too_deep(reviewer) {
        let error = JobError::new(FailureKind::DelegationDepth, format!("the reviewer {why}"));
        return error.for_good().with("oas_rule", "OAS-32").into();
    }
    if let Some(why) = outbox.claimed.too_many_jobs(&format!("the reviewer `{reviewer}` was not asked"), 1) {
        let error = JobError::new(FailureKind::TreeJobs, why);
        return error.for_good().with("oas_rule", "OAS-32").into();
    }
    let span = trace::handoff(&agent.name, DelegationMode::Supervisor.as_str());
    let meta = trace::child_meta(outbox, None, &agent.name, &span);
    let mut agent = (*agent).clone().working_for(&outbox.claimed.agent);
    // Its input and its words quote an output that no other reader may see yet (OAS-35).
    agent.guardrails.for_restricted |= review.kind == ReviewKind::Output;
    let call_id = call_of_review(&review.call_id, review.kind);
    let (job, engagement) = past.child_of(outbox, (&call_id, 0), review.turn);
    let left_ms = review.deadline_at.map(|deadline| deadline.since(outbox.claimed.deps.clock.now()).max(1));
    let child = NewChild {
        job,
        engagement: engagement.clone(),
        agent: Box::new(agent),
        call_id,
        turn: review.turn,
        mode: DelegationMode::Supervisor,
        args: RawJson::of(&json!([text])),
        meta,
        timeout_ms: left_ms,
        jobs: 1,
        max_jobs_per_tree: outbox.claimed.fan_out.max_jobs_per_tree,
        review: Some(Box::new(NewReview { asked: Some(engagement), ..review })),
    };
    Wait::Children(vec![child]).into()
}

/// Returns the input for the reviewer of a call.
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
