//! Guardrails of an OpenAgentSpec agent (OAS-41 … OAS-46).
//!
//! The agent does not call them, so no history contains them, and they count as no repetition. A check whose
//! outcome was lost in a crash runs again under the same key. A guardrail that denies a text ends the engagement, and
//! no further step runs for it. One whose tool is unavailable passes no text either, and runs again under the
//! job's retry policy. The audit records the inputs and answers of each check.

use super::{exposes, tool_rules};
use crate::state::{Claimed, Outbox, Secured, Stop, TurnHistory, pay};
use crate::tool::http::STATUS;
use crate::tool::outbound::CANNOT_CONNECT;
use crate::tool::{Identity, Invocation, Tool, ToolError};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use turnstone_domain::agent::guardrails::{Guardrail, Side, takes_parts, without_pictures};
use turnstone_domain::artifact::NewArtifact;
use turnstone_domain::error::FailureKind;
use turnstone_domain::event::{self, EventBody};
use turnstone_domain::fork::QUESTIONS;
use turnstone_domain::guardrail_check::{GuardrailCall, GuardrailCheck};
use turnstone_domain::message::{ContentPart, Message};
use turnstone_domain::policy::Expression;
use turnstone_domain::{CallId, JobError, Phase, digest};

/// The most tries of a guardrail's tool whose failure is known.
const TRIES: u32 = 3;
/// The delay between two tries.
const PAUSE: Duration = Duration::from_millis(200);

/// The positions of a call's files among its checks follow those of its questions.
const FILES: usize = 500;

/// Returns the first position of a call among the checks of a turn: that of its question, and of the answers to it.
pub fn position_of(call: usize) -> usize {
    QUESTIONS * (call + 1)
}

/// Returns the files of a call that have a text, with their positions.
pub fn files(call: usize, files: &[NewArtifact]) -> Vec<(usize, Checked<'_>)> {
    let positions = position_of(call) + FILES..;
    let texts =
        positions.zip(files).filter_map(|(position, file)| Some((position, Checked::text(file.text()?))));
    texts.collect()
}

/// Returns the text of an answer for the user, which is all that the model wrote, and none of the fields that the agent
/// exposes beside it.
pub fn answer(claimed: &Claimed, past: &TurnHistory, result: &Value) -> String {
    let said = match result {
        Value::Object(fields) if exposes::is_any(claimed, past) => fields.get("text").unwrap_or(result),
        whole => whole,
    };
    said.as_str().map_or_else(|| said.to_string(), str::to_owned)
}

/// Checks contents one by one. Those of the user are checked before a model sees any of them (OAS-41, OAS-42), those of the
/// agent before any of it is shown (OAS-43, OAS-44).
///
/// # Errors
/// [`Stop::Fail`] when one does not pass.
pub async fn check(
    past: &TurnHistory,
    outbox: &mut Outbox,
    side: Side,
    contents: Vec<(usize, Checked<'_>)>,
) -> Result<(), Stop> {
    for (position, content) in contents {
        check_one(past, outbox, side, position, content).await?;
    }
    Ok(())
}

/// The content that a guardrail checks.
#[derive(Clone, Copy)]
pub struct Checked<'a> {
    /// All of it as text.
    text: &'a str,
    /// Its ordered parts, when it is more than one text.
    parts: &'a [ContentPart],
}

impl<'a> Checked<'a> {
    /// Returns a text.
    pub fn text(text: &'a str) -> Self {
        Self { text, parts: &[] }
    }

    /// Returns a message with its parts.
    pub fn of(message: &'a Message) -> Self {
        Self { text: &message.content, parts: &message.parts }
    }

    /// Returns a digest of the content, pictures included: a recorded verdict is for the same content only.
    fn digest(self) -> String {
        match self.parts {
            [] => digest::of_text(self.text),
            parts => digest::of_json(&json!(parts)),
        }
    }
}

async fn check_one(
    past: &TurnHistory,
    outbox: &mut Outbox,
    side: Side,
    position: usize,
    content: Checked<'_>,
) -> Result<(), Stop> {
    let agent = Arc::clone(&outbox.claimed.agent);
    let Some(guardrail) = agent.guardrails.of(side) else { return Ok(()) };
    let call_id = CallId(format!(
        "{}-guard-{}-{}-{position}",
        outbox.claimed.job.id.as_str(),
        side.as_str(),
        outbox.position.turn
    ));
    let text_sha256 = content.digest();
    let known = on_record(past, outbox, side, position, &text_sha256)?;
    let mut checked_call = GuardrailCall::default();
    let outcome = match known {
        Some(true) => Ok(()),
        Some(false) => Err(No::Denied("as the record says; a fork with live tools asks it again".to_owned())),
        None => held(outbox, guardrail, (side, &call_id), content, &mut checked_call).await?,
    };
    let passed = outcome.is_ok();
    // The digest of a model's text is published only when the text is shown as well.
    let is_shown = (side == Side::Input || passed) && !agent.guardrails.is_shown_by_its_caller();
    let checked = event::Checked {
        side,
        tool: guardrail.tool_name.clone(),
        passed,
        position: Some(position),
        away: matches!(outcome, Err(No::Away(..))).then_some(true),
        text_sha256: is_shown.then_some(text_sha256),
        on_record: known.map(|_| true),
    };
    if known.is_none() {
        let (tool, turn_number, at) =
            (guardrail.tool_name.clone(), outbox.position.turn, outbox.claimed.deps.clock.now());
        outbox.pending.checks.push(GuardrailCheck {
            call_id,
            turn: turn_number,
            side,
            tool,
            passed,
            asked: checked_call,
            at,
        });
    }
    outbox.event(&EventBody::GuardrailChecked(checked));
    outcome.map_err(|no| {
        let side = side.as_str();
        let (message, retryable, wait_ms) = match no {
            No::Denied(why) => {
                (format!("the {side} guardrail of agent `{}` did not pass: {why}", agent.name), false, None)
            }
            No::Away(why, wait_ms) => {
                let message = format!(
                    "the {side} guardrail of agent `{}` could not be asked, so nothing passes it: {why}",
                    agent.name
                );
                (message, true, wait_ms)
            }
        };
        let error =
            JobError::new(FailureKind::Policy, message).with("oas_rule", "OAS-46").with("guardrail", side);
        Stop::Fail(JobError { retryable, ..error }.retry_after(wait_ms))
    })
}

/// The reason why a guardrail denies a text, without any words of its tool.
enum No {
    /// It denies the text, and would deny it again.
    Denied(String),
    /// Its tool is unavailable or fails. The job's retry policy decides when it runs again, at the earliest
    /// after the tool's delay in milliseconds.
    Away(String, Option<u64>),
}

/// Returns the recorded verdict of the guardrail on the same text. A fork without live tools has the record of
/// its origin, and a rerun that of the engagement.
///
/// # Errors
/// [`Stop::Fail`] when a rerun has no verdict on record.
fn on_record(
    past: &TurnHistory,
    outbox: &Outbox,
    side: Side,
    position: usize,
    text_sha256: &str,
) -> Result<Option<bool>, Stop> {
    let Some(fork) = &past.fork else { return Ok(None) };
    let number = outbox.position.turn;
    if fork.recorded.is_all {
        let known = fork.recorded.verdict_at(number, side, position);
        let missing = || {
            let message = format!("the record does not say what the {} guardrail came to", side.as_str());
            JobError::new(FailureKind::Policy, message)
        };
        return known.map(Some).ok_or_else(|| missing().into());
    }
    if fork.origin.live_tools {
        return Ok(None);
    }
    let known = fork.recorded.verdict_on(side, text_sha256);
    // A denied text of a model has no digest on record; an answer that the fork shares is the same text.
    let point = fork.origin.point;
    let is_shared = side == Side::Output && point.turn == number && point.phase > Phase::Infer;
    Ok(known.or_else(|| fork.recorded.verdict_at(number, side, position).filter(|_| is_shared)))
}

/// Runs the guardrail; `asked` receives the input and the answer of its tool.
///
/// # Errors
/// [`Stop::Fail`] when a budget has too little left for its tool, and the errors of [`Outbox::secure`].
async fn held(
    outbox: &mut Outbox,
    guardrail: &Guardrail,
    (side, call_id): (Side, &CallId),
    content: Checked<'_>,
    checked_call: &mut GuardrailCall,
) -> Result<Result<(), No>, Stop> {
    let name = &guardrail.tool_name;
    // The text was paid for: it is durable before the tool is called, because the call may take long.
    outbox.secure().await?;
    if outbox.next_phase() == Some(Phase::Emit) {
        // Its call is the first of its phase.
        outbox.unless_draining()?;
    }
    let Checked { text, parts } = content;
    checked_call.input = without_pictures(side.arguments(&Value::Null, text, parts));
    let tool = match tool(&outbox.claimed, outbox.secured()?, name).await {
        Ok(tool) => tool,
        Err((no, error)) => {
            checked_call.error = Some(error);
            return Ok(Err(no));
        }
    };
    let schema = &tool.spec().input_schema;
    let input = side.arguments(schema, text, parts);
    checked_call.input = without_pictures(input.clone());
    if parts.iter().any(ContentPart::is_image) && !takes_parts(schema) {
        let why = format!("its tool `{name}` sees no pictures: its schema has no argument `parts`");
        checked_call.error = Some(why.clone());
        return Ok(Err(No::Denied(why)));
    }
    let output = match called(outbox, &tool, name, call_id, &input).await? {
        Ok(output) => output,
        Err(error) => {
            checked_call.error = Some(error.to_string());
            let why = format!("its tool `{name}` {}", cause(&error));
            return Ok(Err(match error {
                ToolError::Final(_) | ToolError::Refused(_) => No::Denied(why),
                ToolError::Busy(_, wait_ms) => No::Away(why, wait_ms),
                ToolError::Failed(_)
                | ToolError::Answered(_)
                | ToolError::Unreached(_)
                | ToolError::Lost(_)
                | ToolError::Timeout(_) => No::Away(why, None),
                ToolError::Begun(_) | ToolError::Asks(_) => {
                    No::Denied(format!("`{name}` is an agent of another server, which no guardrail can ask"))
                }
            }));
        }
    };
    let holds = turnstone_blocking::wait_in_place(|| {
        let expression = Expression::compile_over_output(&guardrail.assertion).map_err(|e| e.to_string())?;
        expression.assert_over_output(&output).map_err(|denial| denial.to_string())
    });
    checked_call.output = Some(output);
    checked_call.denial = holds.as_ref().err().cloned();
    Ok(holds.map_err(No::Denied))
}

/// Returns the outcome of a failed call without the tool's own words, which may repeat a model's text.
fn cause(error: &ToolError) -> String {
    let text = error.to_string();
    if let Some((_, rest)) = text.split_once(STATUS) {
        let code: String = rest.chars().take_while(char::is_ascii_digit).collect();
        return format!("{}{code}", STATUS.trim_start());
    }
    let ours = [CANNOT_CONNECT, "its server is not available", "the connection to its server was lost"];
    if let Some(known) = ours.iter().find(|words| text.contains(*words)) {
        let refused = if text.contains("refused") { " (connection refused)" } else { "" };
        return format!("could not be reached: {known}{refused}");
    }
    match error {
        ToolError::Timeout(_) => "did not answer in time",
        ToolError::Lost(_) => "gave no answer before the connection was lost",
        ToolError::Refused(_) => "may not be called so; the audit says why",
        _ => "failed; the audit has its words",
    }
    .to_owned()
}

async fn tool(claimed: &Claimed, _: Secured<'_>, name: &str) -> Result<Arc<dyn Tool>, (No, String)> {
    let toolbox = &claimed.deps.toolbox;
    let missing = || {
        let why = format!("this worker has no tool `{name}`");
        (No::Denied(why.clone()), why)
    };
    match tool_rules::admits_guardrail(claimed, name) {
        Ok(true) => {}
        Ok(false) => return Err(missing()),
        Err(why) => return Err((No::Denied(why.clone()), why)),
    }
    if let Some(tool) = toolbox.get(name) {
        return Ok(Arc::clone(tool));
    }
    let (server, tool) = toolbox.of_server(name).ok_or_else(missing)?;
    let catalogue = server
        .catalogue()
        .await
        .map_err(|why| (No::Away(format!("the server of its tool `{name}` is not available"), None), why))?;
    let found = catalogue.named(tool, claimed.agent.format);
    let found = found.map_err(|why| (No::Denied(format!("this worker has no tool `{name}`")), why))?;
    Ok(Arc::clone(found) as Arc<dyn Tool>)
}

/// Returns the answer of the tool. Each try is paid for before it runs.
async fn called(
    outbox: &mut Outbox,
    tool: &Arc<dyn Tool>,
    name: &str,
    call_id: &CallId,
    input: &Value,
) -> Result<Result<Value, ToolError>, Stop> {
    // The server itself runs the check, without a user's identity.
    let identity = Identity::default();
    let mut tries = 1;
    loop {
        outbox.unless_frozen().await?;
        pay::guardrail(outbox, name).await?;
        outbox.secured()?;
        let invocation = Invocation { call_id, input, timeout: tool.timeout(), identity: &identity };
        match tool.call(invocation).await {
            Err(
                ToolError::Failed(_) | ToolError::Answered(_) | ToolError::Unreached(_) | ToolError::Busy(..),
            ) if tries < TRIES => {
                tries += 1;
                tokio::time::sleep(PAUSE).await;
            }
            other => return Ok(other),
        }
    }
}
