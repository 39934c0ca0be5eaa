//! Restrictions of a capability: the assertion first, then the review; both must pass (OAS-28 … OAS-36).
//!
//! The configuration may add restrictions for the tool (`[tool_rules]`). All assertions precede all reviews.

use super::reviewers::{self, OPERATOR};
use super::{Ruling, escalation, reviewer};
use crate::state::journal::Call;
use crate::state::{Claimed, Outbox, Stop, TurnHistory};
use serde_json::{Value, json};
use turnstone_blocking::wait_in_place;
use turnstone_domain::agent::errors::Contact;
use turnstone_domain::agent::{AgentFormat, Capability, Restriction};
use turnstone_domain::digest;
use turnstone_domain::engagement::outputs_of;
use turnstone_domain::error::FailureKind;
use turnstone_domain::policy::View;
use turnstone_domain::review::{
    NewReview, REJECTION_CONTINUES, ReviewAnswer, ReviewKind, ReviewPlan, ReviewState,
};
use turnstone_domain::tool_call::ToolOutcome;
use turnstone_domain::{JobError, ReviewId, Wait};

/// One restriction of a call: that of the agent's document, or one of the configuration.
struct RestrictionPart<'r> {
    restriction: &'r Restriction,
    /// The section of the configuration; `None` for the document.
    section: Option<&'r str>,
}

impl<'r> RestrictionPart<'r> {
    /// Returns all restrictions, that of the document first.
    fn all(restriction: &'r Restriction) -> impl Iterator<Item = Self> {
        let added = restriction.added.iter();
        let added =
            added.map(|one| Self { restriction: &one.restriction, section: Some(one.section.as_str()) });
        std::iter::once(Self { restriction, section: None }).chain(added)
    }

    /// Returns the reviewer that the restriction names.
    fn reviewer(&self) -> Option<Contact> {
        let target = self.restriction.require_review.clone()?;
        Some(Contact { target, timeout_ms: self.restriction.answer_within_ms, ..Contact::default() })
    }

    /// Returns the name of the call in the Engagement object.
    fn name(&self, call: &'r Call) -> &'r str {
        self.section.unwrap_or(&call.asked.name)
    }

    /// Returns the digest that binds an answer to the arguments, and to the section that demands it.
    fn subject(&self, call: &Call) -> String {
        match self.section {
            None => digest::of_json(&call.asked.arguments),
            Some(section) => digest::of_json(&json!([section, call.asked.arguments])),
        }
    }

    /// Returns the names of capabilities that the assertion may use in their dotted form.
    fn names(&self, claimed: &'r Claimed) -> Vec<&'r str> {
        match self.section {
            None => claimed.agent.capability_names(),
            Some(section) => vec![section],
        }
    }
}

/// Checks the input restriction before the call (OAS-28, OAS-34).
pub fn before(
    past: &TurnHistory,
    outbox: &mut Outbox,
    call: &Call,
    capability: &Capability,
    idempotent: bool,
) -> Result<Ruling, Stop> {
    let restriction = &capability.input_restriction;
    let high_risk = of_high_risk(&outbox.claimed, call, idempotent);
    let outputs = RestrictionPart::all(&capability.output_restriction).filter_map(|part| part.reviewer());
    let outputs: Vec<Contact> = outputs.collect();
    if !restriction.restricts() && high_risk.is_none() && outputs.is_empty() {
        return Ok(Ruling::Allow);
    }
    for part in RestrictionPart::all(restriction) {
        if let Some(why) = violated_before(&outbox.claimed, past, call, &part) {
            let text =
                format!("the input restriction of `{}` does not allow this call: {why}", part.name(call));
            return Ok(Ruling::Deny(ToolOutcome::refused(FailureKind::Policy, text)));
        }
    }
    let reviewed = RestrictionPart::all(restriction).filter_map(|part| {
        let instead = high_risk.clone().filter(|_| part.section.is_none());
        Some((part.reviewer().or(instead)?, part))
    });
    let reviewed: Vec<(Contact, RestrictionPart<'_>)> = reviewed.collect();
    // A call whose output has no reviewer does not run either.
    let all = reviewed.iter().map(|(reviewer, _)| reviewer).chain(&outputs);
    let missing = all.map(|reviewer| &reviewer.target);
    if let Some(word) = missing.into_iter().find(|word| !reviewers::is_reviewer(&outbox.claimed, word)) {
        let text = format!(
            "`{}` needs the approval of its reviewer `{word}`, and there is no such reviewer: the caller named no user",
            call.asked.name
        );
        return Ok(Ruling::Deny(ToolOutcome::refused(FailureKind::Policy, text)));
    }
    for (reviewer, part) in reviewed {
        let view = past.object.as_ref();
        let view = view.map(|object| object.with_pending(&call.asked.name, &call.asked.arguments));
        let engagement = view.map(|view| view.to_json()).unwrap_or_default();
        if let Some(refusal) = declined(&outbox.claimed, past, call, &part) {
            return Ok(Ruling::Deny(refusal));
        }
        // Planned: no request leaves before the answer.
        if call.journalled.is_none() {
            let intent = call.intend(outbox.position.turn, idempotent, false);
            outbox.pending.tool_calls.push(intent);
        }
        let question = question(&outbox.claimed, (call, &part), None, engagement);
        review_requested(past, outbox, (call, &part), ReviewKind::Input, reviewer, question)?;
    }
    Ok(Ruling::Allow)
}

/// Returns the reason why an assertion does not allow a call that is about to be made.
fn violated_before(
    claimed: &Claimed,
    past: &TurnHistory,
    call: &Call,
    part: &RestrictionPart<'_>,
) -> Option<String> {
    let source = part.restriction.assertion.as_deref()?;
    let object = past.object.as_ref();
    let view = object.map(|object| object.with_pending(part.name(call), &call.asked.arguments));
    violated(claimed, (source, &part.names(claimed)), view.as_ref())
}

/// Returns the outcome of a call of an Agent Spec agent that was rejected: its model continues without the call.
fn declined(
    claimed: &Claimed,
    past: &TurnHistory,
    call: &Call,
    part: &RestrictionPart<'_>,
) -> Option<ToolOutcome> {
    let answer = answer(past, call, part, ReviewKind::Input).filter(|_| claimed.is_of_crew)?;
    matches!(answer.state, ReviewState::Rejected | ReviewState::Expired).then(|| {
        let why = answer.reason.as_deref().unwrap_or("no reason was given");
        let text = format!("the call of `{}` was denied: {why}", call.asked.name);
        ToolOutcome::refused(FailureKind::Policy, text)
    })
}

/// Checks the output assertions, after the call and before any other use of the result (OAS-29, OAS-35).
pub fn after(
    claimed: &Claimed,
    past: &TurnHistory,
    call: &Call,
    capability: &Capability,
    outcome: &ToolOutcome,
) -> Ruling {
    let asserted = RestrictionPart::all(&capability.output_restriction).filter(|_| outcome.was_invoked());
    for part in asserted {
        let Some(source) = part.restriction.assertion.as_deref() else { continue };
        let (name, outputs) = (part.name(call), outputs_of(outcome));
        let object = past.object.as_ref();
        let view = object.map(|object| object.with_made(name, &call.asked.arguments, &outputs));
        if let Some(why) = violated(claimed, (source, &part.names(claimed)), view.as_ref()) {
            let text =
                format!("the output restriction of `{name}` does not allow its result to be used: {why}");
            return Ruling::Deny(ToolOutcome::failed(FailureKind::Policy, text));
        }
    }
    // The review may be approved already, by the recorded call in a fork or by the record in a rerun.
    let reviewed = capability.output_restriction.is_reviewed();
    if reviewed && !is_output_approved(past, call, capability) { Ruling::Review } else { Ruling::Allow }
}

/// Asks for the output reviews; returns once each reviewer has approved.
pub fn review_output(
    past: &TurnHistory,
    outbox: &Outbox,
    call: &Call,
    capability: &Capability,
    outcome: &ToolOutcome,
) -> Result<(), Stop> {
    for part in RestrictionPart::all(&capability.output_restriction) {
        let Some(reviewer) = part.reviewer() else { continue };
        let outputs = outputs_of(outcome);
        let engagement = candidate(past, call, &outputs);
        let question = question(&outbox.claimed, (call, &part), Some(outputs), engagement);
        review_requested(past, outbox, (call, &part), ReviewKind::Output, reviewer, question)?;
    }
    Ok(())
}

/// Returns the newest review of this call and these arguments, decided or open.
fn answer<'t>(
    past: &'t TurnHistory,
    call: &Call,
    part: &RestrictionPart<'_>,
    kind: ReviewKind,
) -> Option<&'t ReviewAnswer> {
    let subject = part.subject(call);
    past.reviews.iter().rev().find(|review| {
        review.call_id == call.asked.call_id && review.kind == kind && review.arguments_hash == subject
    })
}

/// Returns true if every reviewer has approved the output of this call with these arguments.
fn is_output_approved(past: &TurnHistory, call: &Call, capability: &Capability) -> bool {
    let mut reviewed =
        RestrictionPart::all(&capability.output_restriction).filter(|part| part.reviewer().is_some());
    reviewed.all(|part| {
        answer(past, call, &part, ReviewKind::Output)
            .is_some_and(|answer| answer.state == ReviewState::Approved)
    })
}

/// Returns once the reviewer has approved this call and these arguments.
///
/// # Errors
/// [`Stop::Park`] until there is an answer, [`Stop::Fail`] after a rejection: the flow may not continue
/// without confirmation (OAS-32).
fn review_requested(
    past: &TurnHistory,
    outbox: &Outbox,
    (call, part): (&Call, &RestrictionPart<'_>),
    kind: ReviewKind,
    reviewer: Contact,
    question: Value,
) -> Result<(), Stop> {
    let word = reviewer.target.as_str();
    let own_ms = reviewer.timeout_ms.and_then(|ms| i64::try_from(ms).ok());
    let wait = own_ms.or_else(|| outbox.claimed.deps.options.review_deadline_ms());
    let answer = answer(past, call, part, kind);
    let asking = || {
        let arguments_hash = part.subject(call);
        NewReview { arguments_hash, ..question_to(outbox, call, kind, question) }
    };
    match answer.map(|review| (review.state, review)) {
        Some((ReviewState::Approved, _)) => Ok(()),
        Some((ReviewState::Rejected | ReviewState::Expired, review)) => {
            Err(rejected(&outbox.claimed, call, review))
        }
        None if outbox.claimed.is_reviewed_by_agent(word) => {
            let review = NewReview { reviewer: word.to_owned(), ..asking() };
            let deadline_at = wait.map(|ms| outbox.claimed.deps.clock.now().plus_ms(ms));
            let text = reviewer::input(call, kind, &review.question);
            Err(reviewer::ask(past, outbox, NewReview { deadline_at, ..review }, text))
        }
        Some((ReviewState::Open, _)) if outbox.claimed.is_reviewed_by_agent(word) => {
            Err(Wait::Children(Vec::new()).into())
        }
        Some((ReviewState::Open, _)) => Err(Wait::Reviews(Vec::new()).into()),
        None => {
            let review = asking();
            match reviewers::assign(&outbox.claimed, review, word, wait) {
                Some(review) => Err(Wait::Review(review).into()),
                None => {
                    let message = format!(
                        "`{}` is reviewed by `{word}`, and there is no such reviewer",
                        call.asked.name
                    );
                    Err(JobError::new(FailureKind::Policy, message).with("oas_rule", "OAS-31").into())
                }
            }
        }
    }
}

/// Decides if a call that is not idempotent, and whose outcome was lost in a crash, may run once more. Each approval
/// allows one more request.
pub fn may_resend(past: &TurnHistory, outbox: &Outbox, call: &Call, sends: i64) -> Result<Ruling, Stop> {
    let about = |state| {
        let same = |review: &&ReviewAnswer| {
            review.call_id == call.asked.call_id
                && review.kind == ReviewKind::UnknownOutcome
                && review.state == state
                && review.reported.is_none()
        };
        past.reviews.iter().filter(same).count()
    };
    if about(ReviewState::Rejected) + about(ReviewState::Expired) > 0 {
        return Ok(Ruling::Deny(ToolOutcome::failed(FailureKind::Tool, UNKNOWN)));
    }
    if i64::try_from(about(ReviewState::Approved)).unwrap_or(0) >= sends {
        return Ok(Ruling::Allow);
    }
    if about(ReviewState::Open) > 0 {
        return Err(Wait::Reviews(Vec::new()).into());
    }
    let question = json!({"name": call.asked.name, "inputs": call.asked.arguments, "call_id": call.asked.call_id,
        "what_happened": "a worker stopped after it sent this call and before it learnt the outcome",
        "approve_means": "call it once more", "reject_means": "report an unknown outcome to the model",
        "result_means": "the call was made, with this result, and is not called again"});
    let review = question_to(outbox, call, ReviewKind::UnknownOutcome, question);
    Err(Wait::Review(reviewers::assign_or_operator(&outbox.claimed, review, OPERATOR, None)).into())
}

/// Returns the result of a call of unknown outcome that its reviewer reported. It is that of the last send: one more, which
/// may be made later, has an outcome of its own.
pub fn reported_result<'t>(past: &'t TurnHistory, call: &Call, sends: i64) -> Option<&'t Value> {
    let about = past.reviews.iter().filter(|review| {
        review.call_id == call.asked.call_id
            && review.kind == ReviewKind::UnknownOutcome
            && review.state == ReviewState::Approved
    });
    let (reports, permissions): (Vec<_>, Vec<_>) = about.partition(|review| review.reported.is_some());
    let is_of_last = i64::try_from(permissions.len()).unwrap_or(i64::MAX).saturating_add(1) == sends;
    reports.last().filter(|_| is_of_last)?.reported.as_ref()
}

/// The outcome for the model of a call that may have had its effect.
const UNKNOWN: &str = "the outcome of this call is unknown: it may or may not have had its effect";

/// Returns a question about this call and these arguments, without a reviewer yet.
fn question_to(outbox: &Outbox, call: &Call, kind: ReviewKind, question: Value) -> NewReview {
    NewReview {
        id: ReviewId(outbox.claimed.deps.ids.next()),
        turn: outbox.position.turn,
        call_id: call.asked.call_id.clone(),
        kind,
        reviewer: String::new(),
        question,
        arguments_hash: digest::of_json(&call.asked.arguments),
        deadline_at: None,
        plan: ReviewPlan::default(),
        asked: None,
    }
}

/// Returns the failure after a rejection, which ends the engagement (OAS-A7).
fn rejected(claimed: &Claimed, call: &Call, review: &ReviewAnswer) -> Stop {
    let name = &call.asked.name;
    let message = escalation::sentence(
        review,
        &format!("the call of `{name}` was rejected"),
        &format!("the call of `{name}` was not approved"),
    );
    let error = JobError::new(FailureKind::Policy, message);
    if claimed.agent.format == AgentFormat::Ossa {
        // A person has decided: no handler of the manifest asks again.
        return error.escalated(escalation::decided(Some(escalation::decider(review)), review.state)).into();
    }
    error.with("oas_rule", "OAS-32").into()
}

/// Returns the reviewer for calls of an OSSA agent that may not run twice (`human_in_loop`,
/// `high_risk_action`).
fn of_high_risk(claimed: &Claimed, call: &Call, idempotent: bool) -> Option<Contact> {
    let risky = !idempotent && claimed.delegate(&call.asked.name).is_none();
    claimed.agent.approvals.high_risk.clone().filter(|_| risky)
}

/// Returns the question for a reviewer: the agent, the call's arguments, and the assertion that it passed.
fn question(
    claimed: &Claimed,
    (call, part): (&Call, &RestrictionPart<'_>),
    outputs: Option<Value>,
    engagement: Value,
) -> Value {
    let mut question = json!({"agent": claimed.agent.name, "name": call.asked.name, "call_id": call.asked.call_id,
                              "inputs": call.asked.arguments, "engagement": engagement});
    if let Some(assertion) = &part.restriction.assertion {
        question["assertion"] = assertion.as_str().into();
    }
    if let Some(section) = part.section {
        question["tool_rules"] = section.into();
    }
    match outputs {
        Some(outputs) => question["outputs"] = outputs,
        None if claimed.is_of_crew => {
            question["reject_means"] = "continue without this call".into();
            question[REJECTION_CONTINUES] = true.into();
        }
        None => {}
    }
    question
}

/// Returns the Engagement object with the call's output, which the object does not hold until the reviewer
/// approves.
fn candidate(past: &TurnHistory, call: &Call, outputs: &Value) -> Value {
    let Some(mut object) = past.object.clone() else { return Value::Null };
    object.reveal(&call.asked.name, outputs);
    object.to_json()
}

/// Returns the reason why an assertion does not hold; any value except `true` fails (OAS-36).
fn violated(claimed: &Claimed, (source, names): (&str, &[&str]), view: Option<&View<'_>>) -> Option<String> {
    let Some(view) = view else { return Some("there is no Engagement object".to_owned()) };
    match claimed.deps.expression(names, source) {
        Ok(expression) => {
            let denied = match expression.is_light() {
                true => expression.assert(view),
                false => wait_in_place(|| expression.assert(view)),
            };
            denied.err().map(|denial| denial.to_string())
        }
        Err(why) => Some(why),
    }
}
