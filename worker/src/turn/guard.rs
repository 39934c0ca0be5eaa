//! Guardrails of an OpenAgentSpec agent (OAS-41 … OAS-46).
//!
//! They are no calls of the agent: they stand in no history and count as no repetition. A check whose outcome a crash lost is
//! made again under the same key. A guardrail that does not hold ends the engagement, and nothing else is run for it. One
//! whose tool is away lets nothing pass either, and is asked again when the job's retry policy says so. What was asked and
//! answered stands in the audit.

use super::exposes;
use super::secured::Secured;
use super::state::Turn;
use super::stop::Stop;
use crate::phases::exec::pay;
use crate::tool::http::STATUS;
use crate::tool::outbound::CANNOT_CONNECT;
use crate::tool::{Identity, Invocation, Tool, ToolError};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use turnstone_domain::agent::guardrails::{Guardrail, Side};
use turnstone_domain::error::FailureKind;
use turnstone_domain::fork::QUESTIONS;
use turnstone_domain::guardrail_check::{Asked, GuardrailCheck};
use turnstone_domain::message::Message;
use turnstone_domain::policy::Expression;
use turnstone_domain::{CallId, EventName, JobError, Phase, RawJson, Settlement, digest};

/// Tries of a guardrail's tool whose failure is known.
const TRIES: u32 = 3;
/// Between two tries.
const PAUSE: Duration = Duration::from_millis(200);

/// Checks what a user says, message by message, before a model sees any of it (OAS-41, OAS-42).
///
/// # Errors
/// [`Stop::Fail`] when one does not pass.
pub async fn inputs(turn: &mut Turn, messages: &[Message]) -> Result<(), Stop> {
    for (position, message) in messages.iter().enumerate() {
        check(turn, Side::Input, position, &message.content).await?;
    }
    Ok(())
}

/// Checks what the user is to be answered, before any of it is shown (OAS-43, OAS-44): all that the model said, and nothing of
/// what the agent exposes beside it.
///
/// # Errors
/// [`Stop::Fail`] when it does not pass.
pub async fn answer(turn: &mut Turn, result: &Value) -> Result<(), Stop> {
    if turn.agent.guardrails.of(Side::Output).is_none() {
        return Ok(());
    }
    let said = match result {
        Value::Object(fields) if exposes::is_any(turn) => fields.get("text").unwrap_or(result),
        whole => whole,
    };
    let text = said.as_str().map_or_else(|| said.to_string(), str::to_owned);
    check(turn, Side::Output, 0, &text).await
}

/// Checks what the agent wants to ask its user, before any of it is shown (OAS-44).
///
/// # Errors
/// [`Stop::Fail`] when it does not pass.
pub async fn question(turn: &mut Turn, call: usize, text: &str) -> Result<(), Stop> {
    check(turn, Side::Output, QUESTIONS * (call + 1), text).await
}

/// Checks what a user answered to a question of the agent, value by value, before a model sees any of it (OAS-42).
///
/// # Errors
/// [`Stop::Fail`] when one does not pass.
pub async fn answers(turn: &mut Turn, call: usize, texts: &[String]) -> Result<(), Stop> {
    for (position, text) in texts.iter().enumerate() {
        check(turn, Side::Input, QUESTIONS * (call + 1) + position, text).await?;
    }
    Ok(())
}

/// Places of the files of a call among its checks: behind what it asks.
const FILES: usize = 500;

/// Checks what is in a file that the agent made, before anybody may have it (OAS-44).
///
/// # Errors
/// [`Stop::Fail`] when it does not pass.
pub async fn file(turn: &mut Turn, call: usize, part: usize, text: &str) -> Result<(), Stop> {
    check(turn, Side::Output, QUESTIONS * (call + 1) + FILES + part, text).await
}

async fn check(turn: &mut Turn, side: Side, position: usize, text: &str) -> Result<(), Stop> {
    let agent = Arc::clone(&turn.agent);
    let Some(guardrail) = agent.guardrails.of(side) else { return Ok(()) };
    let call_id =
        CallId(format!("{}-guard-{}-{}-{position}", turn.job.id, side.as_str(), turn.position.turn));
    let text_sha256 = digest::of_text(text);
    let known = on_record(turn, side, position, &text_sha256)?;
    let mut asked = Asked::default();
    let outcome = match known {
        Some(true) => Ok(()),
        Some(false) => Err(No::Denied("as the record says; a fork with live tools asks it again".to_owned())),
        None => held(turn, guardrail, (side, &call_id), text, &mut asked).await?,
    };
    let passed = outcome.is_ok();
    let mut data = json!({"side": side, "tool": guardrail.tool_name, "passed": passed, "position": position});
    if matches!(outcome, Err(No::Away(..))) {
        data["away"] = true.into();
    }
    // The digest of what a model said is told only when what it said is shown as well.
    if (side == Side::Input || passed) && !agent.guardrails.for_guarded {
        data["text_sha256"] = text_sha256.into();
    }
    if known.is_some() {
        data["on_record"] = true.into();
    } else {
        let (tool, turn_number, at) =
            (guardrail.tool_name.clone(), turn.position.turn, turn.deps.clock.now());
        turn.pending().checks.push(GuardrailCheck {
            call_id,
            turn: turn_number,
            side,
            tool,
            passed,
            asked,
            at,
        });
    }
    turn.event(EventName::GuardrailChecked, data);
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

/// Why a guardrail does not let a text pass, without anything that its tool said.
enum No {
    /// It does not hold, and would not the next time.
    Denied(String),
    /// Its tool is away or fails: the job's retry policy says when it is asked again, not before so many milliseconds when
    /// the tool said so.
    Away(String, Option<u64>),
}

/// What the guardrail came to when the same was said before: in an engagement that this one was forked from, unless its tools
/// are called, or when the record of this one is run again.
///
/// # Errors
/// [`Stop::Fail`] when there is nothing but the record, and it does not say.
fn on_record(turn: &Turn, side: Side, position: usize, text_sha256: &str) -> Result<Option<bool>, Stop> {
    let Some(fork) = &turn.fork else { return Ok(None) };
    let number = turn.position.turn;
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
    // What was refused of a model's words has no digest on record; an answer that is shared is the same.
    let point = fork.origin.point;
    let is_shared = side == Side::Output && point.turn == number && point.phase > Phase::Infer;
    Ok(known.or_else(|| fork.recorded.verdict_at(number, side, position).filter(|_| is_shared)))
}

/// Whether the guardrail holds; `asked` is told what its tool was asked and answered.
///
/// # Errors
/// [`Stop::Fail`] when a budget has not enough left for its tool; as [`Turn::secure`].
async fn held(
    turn: &mut Turn,
    guardrail: &Guardrail,
    (side, call_id): (Side, &CallId),
    text: &str,
    asked: &mut Asked,
) -> Result<Result<(), No>, Stop> {
    let name = &guardrail.tool_name;
    // What it looks at was paid for: it is durable before its tool is asked, however long that takes.
    turn.secure().await?;
    if turn.next_phase() == Some(Phase::Emit) {
        // Its call is the first of its phase.
        turn.unless_draining()?;
    }
    asked.input = side.arguments(&Value::Null, text);
    let tool = match tool(turn, turn.secured()?, name).await {
        Ok(tool) => tool,
        Err((no, error)) => {
            asked.error = Some(error);
            return Ok(Err(no));
        }
    };
    asked.input = side.arguments(&tool.spec().input_schema, text);
    let output = match called(turn, &tool, name, call_id, &asked.input).await? {
        Ok(output) => output,
        Err(error) => {
            asked.error = Some(error.to_string());
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
    asked.output = Some(output);
    asked.denial = holds.as_ref().err().cloned();
    Ok(holds.map_err(No::Denied))
}

/// What became of a call, in words that are never the tool's own: it was given what a model said, and may repeat it.
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

async fn tool(turn: &Turn, _: Secured<'_>, name: &str) -> Result<Arc<dyn Tool>, (No, String)> {
    let toolbox = &turn.deps.toolbox;
    if let Some(tool) = toolbox.get(name) {
        return Ok(Arc::clone(tool));
    }
    let missing = || {
        let why = format!("this worker has no tool `{name}`");
        (No::Denied(why.clone()), why)
    };
    let (server, tool) = toolbox.of_server(name).ok_or_else(missing)?;
    let catalogue = server
        .catalogue()
        .await
        .map_err(|why| (No::Away(format!("the server of its tool `{name}` is not available"), None), why))?;
    let found = catalogue.named(tool, turn.agent.format);
    let found = found.map_err(|why| (No::Denied(format!("this worker has no tool `{name}`")), why))?;
    Ok(Arc::clone(found) as Arc<dyn Tool>)
}

/// What the tool says. Each try is paid for before it is made.
async fn called(
    turn: &mut Turn,
    tool: &Arc<dyn Tool>,
    name: &str,
    call_id: &CallId,
    input: &Value,
) -> Result<Result<Value, ToolError>, Stop> {
    // It is the server that checks, in nobody's name.
    let identity = Identity::default();
    let mut tries = 1;
    loop {
        pay::guardrail(turn, name).await?;
        turn.secured()?;
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

/// What of an event a model may have said.
const SAID: [&str; 9] = [
    "file",
    "input",
    "media_type",
    "message",
    "output",
    "output_bytes",
    "sha256",
    "tool_calls",
    "tool_calls_cut",
];

impl Turn {
    /// The end of its job with this result, which no event tells when another agent's guardrail decides about it (OAS-43).
    #[must_use]
    pub fn complete(&self, result: &Value) -> Settlement {
        Settlement::Complete { result: RawJson::of(result), withheld: self.agent.guardrails.for_guarded }
    }

    /// Takes out of an event what a model said, when nothing of that may be shown before it has passed a guardrail (OAS-43).
    pub fn hold_back(&self, data: &mut Value) {
        if !self.agent.guardrails.hold_back() {
            return;
        }
        if let Value::Object(fields) = data {
            let name = fields.get("name").and_then(Value::as_str);
            if name.is_some_and(|name| self.agent.capability(name).is_none()) {
                fields.shift_remove("name");
            }
            SAID.iter().for_each(|name| drop(fields.shift_remove(*name)));
        }
    }

    /// An error whose sentence may quote a model, without that sentence.
    #[must_use]
    pub fn unquoted(&self, error: JobError) -> JobError {
        use FailureKind::{Delegation, Model, OutputSchema, Policy, Tool, ToolInput, ToolNotFound};
        let quotes = matches!(
            error.kind,
            Delegation | Model | OutputSchema | Policy | Tool | ToolInput | ToolNotFound
        );
        let is_guardrails = error.details.contains_key("guardrail");
        if !self.agent.guardrails.hold_back() || !quotes || is_guardrails {
            return error;
        }
        let message =
            "the engagement failed before its answer had passed the output guardrail; the audit says where";
        JobError { message: message.to_owned(), cause: None, ..error }
    }
}
