//! The rules of an agent's document and of the configuration. They are evaluated only here.
//!
//! A phase asks [`may`] before each [`Act`] that a rule can forbid.
//!
//! | rule | file |
//! |---|---|
//! | guardrails check inputs, answers, questions and files (OAS-41 … OAS-46) | `guard` |
//! | filters redact or block personal data and harmful content (RS-08, RS-23) | `content_filter` |
//! | restrictions: assertions and reviews of a call and its output (OAS-28 … OAS-36) | `restriction` |
//! | the configuration admits tools, and adds restrictions (`[tool_rules]`) | `tool_rules` |
//! | people, groups and agents that review | `reviewers`, `reviewer` |
//! | questions about the engagement itself | `escalation`, `confirmation` |
//! | the values that an agent exposes beside its answer (OAS-47) | `exposes` |

mod confirmation;
mod content_filter;
pub mod escalation;
pub mod exposes;
mod guard;
mod restriction;
pub mod reviewer;
pub mod reviewers;
pub mod tool_rules;

pub use restriction::reported_result;

use crate::state::journal::Call;
use crate::state::{Outbox, Stop, TurnHistory};
use guard::Checked;
use serde_json::Value;
use turnstone_domain::agent::Capability;
use turnstone_domain::agent::guardrails::Side;
use turnstone_domain::artifact::NewArtifact;
use turnstone_domain::message::Message;
use turnstone_domain::tool_call::ToolOutcome;

/// An act that a rule of the agent or of the configuration can forbid.
pub enum Act<'a> {
    /// The job continues after an error about which a reviewer was asked.
    Resume,
    /// A user's messages reach the model. The filters redact them.
    Input(&'a mut [Message]),
    /// The agent asks its user this text, in the call at this position.
    Question(usize, &'a str),
    /// The user's answers to the question of the call at this position reach the model.
    Reply(usize, &'a [String]),
    /// A tool is called. `idempotent` is the declaration of the document or of the configuration.
    Call { call: &'a Call, capability: &'a Capability, idempotent: bool },
    /// A call that is not idempotent, and whose outcome was lost, is sent once more, after this many requests.
    Resend(&'a Call, i64),
    /// The files that a call made are kept.
    Files(&'a Call, &'a [NewArtifact]),
    /// The result of a call is used.
    Output { call: &'a Call, capability: &'a Capability, outcome: &'a ToolOutcome },
    /// The result of a call for which [`Ruling::Review`] was the answer reaches the model.
    Release { call: &'a Call, capability: &'a Capability, outcome: &'a ToolOutcome },
    /// The answer reaches the user.
    Answer(&'a Value),
    /// Another turn follows.
    NextTurn,
}

/// The answer of the rules about an act.
pub enum Ruling {
    /// It may happen.
    Allow,
    /// It may not, and the model receives this outcome instead.
    Deny(ToolOutcome),
    /// A reviewer has to approve it, after it was recorded.
    Review,
}

/// Decides if an act may happen now.
///
/// # Errors
/// [`Stop::Park`] until a reviewer or the user has decided. [`Stop::Fail`] when a rule ends the job, such as a guardrail that
/// does not pass (OAS-46), a blocking filter, or a reviewer that rejected.
pub async fn may(past: &TurnHistory, outbox: &mut Outbox, act: Act<'_>) -> Result<Ruling, Stop> {
    match act {
        Act::Resume => escalation::not_refused(past)?,
        Act::Input(messages) => {
            let contents = messages.iter().map(Checked::of).enumerate().collect();
            Box::pin(guard::check(past, outbox, Side::Input, contents)).await?;
            outbox.screen_inputs(messages)?;
        }
        Act::Question(call, text) => {
            let contents = vec![(guard::position_of(call), Checked::text(text))];
            Box::pin(guard::check(past, outbox, Side::Output, contents)).await?;
        }
        Act::Reply(call, texts) => {
            let texts_of_call = texts.iter().map(|text| Checked::text(text));
            let contents = (guard::position_of(call)..).zip(texts_of_call).collect();
            Box::pin(guard::check(past, outbox, Side::Input, contents)).await?;
            outbox.screen_answers(texts)?;
        }
        Act::Call { call, capability, idempotent } => {
            return restriction::before(past, outbox, call, capability, idempotent);
        }
        Act::Resend(call, sends) => return restriction::may_resend(past, outbox, call, sends),
        Act::Files(call, files) => {
            for text in files.iter().filter_map(NewArtifact::text) {
                if let Err(blocked) = outbox.screen_file(&call.asked.name, text) {
                    let denied = ToolOutcome::failed(blocked.kind, blocked.message);
                    return Ok(Ruling::Deny(denied.again_is_useless()));
                }
            }
            let contents = guard::files(call.position, files);
            Box::pin(guard::check(past, outbox, Side::Output, contents)).await?;
        }
        Act::Output { call, capability, outcome } => {
            return Ok(restriction::after(&outbox.claimed, past, call, capability, outcome));
        }
        Act::Release { call, capability, outcome } => {
            restriction::review_output(past, outbox, call, capability, outcome)?;
        }
        Act::Answer(result) if outbox.claimed.agent.guardrails.of(Side::Output).is_some() => {
            let text = guard::answer(&outbox.claimed, past, result);
            Box::pin(guard::check(past, outbox, Side::Output, vec![(0, Checked::text(&text))])).await?;
        }
        Act::Answer(_) => {}
        Act::NextTurn => confirmation::confirmed(past, outbox)?,
    }
    Ok(Ruling::Allow)
}
