//! The text of each event on the timeline.

use super::timeline::SeenEvent;
use crate::commands::job::question::Question;
use crate::output::table::plain;
use crate::output::text::span;
use serde::Serialize;
use serde_json::{Value, json};
use turnstone_domain::Phase;
use turnstone_domain::agent::delegation::DelegationState;
use turnstone_domain::budget::Measure;
use turnstone_domain::event::{
    DelegationRole, EventBody as E, Failure, Inferred, Parked, PhaseDone, UserQuestion,
};
use turnstone_domain::review::ReviewState;

/// The tone of a line, which determines its colour.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tone {
    /// Routine.
    Quiet,
    /// Worth reading.
    Plain,
    /// It went well.
    Good,
    /// It needs attention.
    Warning,
    /// It failed.
    Bad,
}

/// The text of a line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Words {
    /// The phase or tool.
    pub step: String,
    /// The text.
    pub happened: String,
    /// Tokens of this event.
    pub tokens: Option<i64>,
    /// The budget that is left after it.
    pub left: Option<i64>,
    /// The tone.
    pub tone: Tone,
    /// The activity that begins; `None` when there is none.
    pub running: Option<String>,
    /// The command that continues the job; it is printed in full on any terminal.
    pub command: Option<String>,
}

impl Words {
    fn new(step: &str, happened: impl Into<String>, tone: Tone, running: &str) -> Self {
        let (step, running) = (step.to_owned(), (!running.is_empty()).then(|| running.to_owned()));
        Self { step, happened: happened.into(), tokens: None, left: None, tone, running, command: None }
    }
}

/// Returns the words for an event. One that this version does not know or cannot read is shown with its data.
#[must_use]
pub fn of(event: &SeenEvent) -> Words {
    let known = event.body.as_ref().and_then(|body| match body {
        E::InputRequested(asked) => Some(input_requested(&event.engagement, asked)),
        body => of_job(body)
            .or_else(|| around(body))
            .or_else(|| of_model(body))
            .or_else(|| of_tool(body))
            .or_else(|| of_delegate(body))
            .or_else(|| of_review(body))
            .or_else(|| of_check(body)),
    });
    known.unwrap_or_else(|| Words::new(&event.name, event.data.to_string(), Tone::Plain, "running"))
}

/// Describes the events of a job.
fn of_job(body: &E) -> Option<Words> {
    use Tone as T;
    let (happened, tone, running) = match body {
        E::JobEnqueued(job) => {
            (format!("{} is queued in {}", job.job_type, job.queue), T::Plain, "waits for a worker")
        }
        E::JobStarted(job) => {
            let what = format!("attempt {} on worker {}", job.attempt, text(&job.worker_id));
            (what, T::Plain, "a turn begins")
        }
        E::JobCompleted(job) => {
            let happened = format!("completed{}", after(" by ", &job.model_used));
            return Some(Words { tokens: job.tokens_used, ..Words::new("job", happened, T::Good, "") });
        }
        E::JobScheduled(job) => {
            (format!("scheduled for {}", job.scheduled_at), T::Plain, "waits for its time")
        }
        E::JobRescheduled(job) => {
            (format!("put off to {}: {}", job.scheduled_at, job.reason), T::Plain, "waits for its time")
        }
        E::JobCheckpointed(saved) => {
            (format!("its worker saved state {}", saved.sequence), T::Plain, "runs at its worker")
        }
        E::JobFailed(failed) => {
            let what = format!("attempt {} failed: {}", failed.attempt, failure(&failed.failure));
            (what, T::Warning, "is settled")
        }
        E::JobRetrying(job) => {
            let ms = job.retry_delay_ms;
            let delay = if ms >= 60_000 { span(ms) } else { duration(ms) };
            let what = format!("tried again in {delay}, at {}: {}", job.next_retry_at, failure(&job.failure));
            (what, T::Warning, "waits for the next attempt")
        }
        E::JobDiscarded(failed) => (format!("discarded: {}", failure(failed)), T::Bad, ""),
        E::JobCancelled(_) => ("cancelled".to_owned(), T::Bad, ""),
        E::JobExpired(_) => ("expired before it ended".to_owned(), T::Bad, ""),
        E::JobParked(parked) => return Some(of_parked(parked)),
        E::JobAvailable(why) => {
            let reason = text(&why.reason);
            let reason = if reason == "manual_retry" { "it was retried" } else { &reason };
            (format!("available again: {reason}"), T::Plain, "waits for a worker")
        }
        E::JobYielded(why) => {
            let what = format!("given back between two phases: {}", text(&why.reason));
            (what, T::Plain, "waits for a worker")
        }
        E::LeaseExpired(lost) => {
            let worker = text(&lost.worker_id);
            let what =
                format!("worker {worker} stopped responding; another one resumes from the last checkpoint");
            (what, T::Warning, "waits for a worker")
        }
        _ => return None,
    };
    Some(Words::new("job", happened, tone, running))
}

fn of_parked(parked: &Parked) -> Words {
    let (waits, tone, running) = match parked {
        Parked::Children { children } => {
            (format!("{children} agents have answered"), Tone::Plain, "other agents work".to_owned())
        }
        Parked::Budget { budget, until, .. } => {
            let whose = match budget.as_str() {
                "engagement" => "its own budget".to_owned(),
                name => format!("budget {name}"),
            };
            let again = after(", or begins anew at ", until);
            (format!("{whose} is raised{again}"), Tone::Warning, format!("waits for {whose}"))
        }
        Parked::Input { .. } => {
            ("its user answers".to_owned(), Tone::Warning, "waits for an answer of its user".to_owned())
        }
        Parked::Reviews { .. } => {
            let list = "turnstone review list".to_owned();
            let happened = "parked until its reviews are answered; no slot is held".to_owned();
            let running = format!("waits for answers: {list}");
            return Words { command: Some(list), ..Words::new("job", happened, Tone::Warning, &running) };
        }
        Parked::Review { review_id, reviewer, .. } => {
            let approve = format!("turnstone review approve {review_id} --by NAME");
            let happened = format!("parked until {reviewer} answers; no slot is held");
            let running = format!("waits for an answer: {approve}");
            return Words { command: Some(approve), ..Words::new("job", happened, Tone::Warning, &running) };
        }
    };
    Words::new("job", format!("parked until {waits}; no slot is held"), tone, &running)
}

/// Describes events around a job: control by operators, and its cron entry, workflow and queue.
fn around(body: &E) -> Option<Words> {
    let (step, happened, running) = match body {
        E::AgentPaused(why) => ("agent", format!("paused {}", text(&why.reason)), "waits to be resumed"),
        E::AgentResumed(how) => ("agent", format!("resumed {}", text(&how.comment)), "waits for a worker"),
        E::EngagementForked(fork) => {
            let what = format!("forked from {} at turn {}", fork.forked_from, fork.at_turn);
            ("engagement", what, "running")
        }
        E::AgentForked(branch) => ("agent", format!("forked into {}", branch.branch_id), "running"),
        E::AgentMerged(branch) => ("agent", format!("merged into {}", branch.merged_id), "running"),
        E::ToolRetried(call) => {
            ("agent", format!("call {} is made again", call.tool_call_id), "waits for a worker")
        }
        E::CronTriggered(cron) => ("cron", format!("made by {}", cron.cron_name), "waits for a worker"),
        E::CronSkipped(cron) => {
            ("cron", format!("{} skipped a run because of this job", cron.cron_name), "running")
        }
        E::QueuePaused(queue) => ("queue", format!("{} was paused", queue.queue), "running"),
        E::QueueResumed(queue) => ("queue", format!("{} was resumed", queue.queue), "running"),
        E::BudgetChanged(budget) => ("budget", format!("{} was changed", budget.subject), "running"),
        E::BatchEnded(batch) => ("batch", format!("{} has ended", batch.tag), "running"),
        E::WorkflowStepCompleted(step) => ("workflow", format!("step {} completed", step.step), "running"),
        E::WorkflowStarted(flow)
        | E::WorkflowCompleted(flow)
        | E::WorkflowFailed(flow)
        | E::WorkflowCancelled(flow) => {
            let what = body.name().as_str().trim_start_matches("workflow.");
            ("workflow", format!("{} {what}", flow.workflow_id), "running")
        }
        _ => return None,
    };
    Some(Words::new(step, happened, Tone::Plain, running))
}

/// Describes a question to the user, with the command that answers it.
fn input_requested(engagement: &str, asked: &UserQuestion) -> Words {
    let question = Question::read(engagement, &asked.call_id.0, &asked.request_keys);
    let requested = question.as_ref().map(Question::asked).unwrap_or_default();
    let words =
        Words::new("input", format!("asks the user: {requested}"), Tone::Warning, "waits for an answer");
    Words { command: question.map(|question| question.command()), ..words }
}

/// Returns how the model answered, from the data of the completed phase infer.
#[must_use]
pub fn answered(answer: &Inferred, duration_ms: i64) -> String {
    let Inferred { model, provider, finish_reason, .. } = answer;
    format!("{model} at {provider} answered in {} ({})", duration(duration_ms), text(finish_reason))
}

fn of_phase(done: &PhaseDone) -> Option<Words> {
    let phase = done.phase.as_str();
    let running = match done.phase.next() {
        Some(Phase::Infer) => "infer: the model is called",
        Some(next) => next.as_str(),
        None => "the next turn",
    };
    if done.phase != Phase::Infer {
        let happened = format!("done in {}", duration(done.duration_ms));
        return Some(Words::new(phase, happened, Tone::Quiet, running));
    }
    let answer = done.inferred.as_ref()?;
    let words = Words::new(phase, answered(answer, done.duration_ms), Tone::Plain, running);
    let tokens = answer.tokens_in.saturating_add(answer.tokens_out);
    Some(Words { tokens: Some(tokens), left: answer.budget_left, ..words })
}

/// Describes phases and the calls of models.
fn of_model(body: &E) -> Option<Words> {
    let (happened, running) = match body {
        E::PhaseCompleted(done) => return of_phase(done),
        E::ModelFailed(failed) => {
            let (model, provider) = (&failed.model, &failed.provider);
            let what = format!("{model} at {provider} did not answer: {}", text(&failed.message));
            (what, "infer: the next model is called")
        }
        E::ModelRetrying(retry) => {
            let what = format!("{}; asked again in {}", failure(&retry.failure), duration(retry.delay_ms));
            (what, "infer: the models are called again")
        }
        E::ModelAttachedDropped(dropped) => {
            let what =
                format!("{} bytes that the provider attached to its answer are not kept", dropped.bytes);
            (what, "infer: the answer is recorded")
        }
        E::HistorySummarized(summary) => {
            let what = format!("{} messages were summed up by {}", summary.messages, summary.model);
            let words = Words::new("infer", what, Tone::Plain, "infer: the model is called");
            let tokens = summary.tokens_in.saturating_add(summary.tokens_out);
            return Some(Words { tokens: Some(tokens), ..words });
        }
        E::HistoryShortened(shortened) => {
            let what =
                format!("the prompt is too long; {} outcomes of tools are shortened", shortened.results);
            (what, "infer: the model is called again")
        }
        E::OutputRejected(refused) => {
            let what = format!("the answer is refused, asked once more: {}", text(&refused.message));
            (what, "infer: the model is called again")
        }
        _ => return None,
    };
    Some(Words::new("infer", happened, Tone::Warning, running))
}

/// Describes the calls of tools.
fn of_tool(body: &E) -> Option<Words> {
    use Tone as T;
    let (tool, happened, tone, running) = match body {
        E::ToolUnavailable(tool) => {
            (text(&tool.name), format!("not available: {}", text(&tool.message)), T::Warning, "resol")
        }
        E::ToolCalled(call) => {
            let tool = text(&call.name);
            let running = format!("{tool} is called");
            return Some(Words::new(&tool, format!("called with {}", text(&call.input)), T::Plain, &running));
        }
        E::ToolCompleted(call) => {
            let what = format!("answered in {}{}", duration(call.duration_ms), after(": ", &call.output));
            (text(&call.name), what, T::Plain, "exec")
        }
        E::ToolPartlyRead(call) => {
            (text(&call.name), format!("partly read: {}", text(&call.message)), T::Warning, "exec")
        }
        E::ToolFailed(call) => (text(&call.name), failure(&call.failure), T::Warning, "exec"),
        E::ToolRetrying(call) => {
            let next = match &call.instead {
                Some(instead) => format!("{instead} is called instead"),
                None => {
                    let delay = call.delay_ms.map_or_else(|| "an unknown time".to_owned(), duration);
                    format!("retry {} in {delay}", text(&call.retry))
                }
            };
            let (tool, what) = (text(&call.name), format!("{}; {next}", failure(&call.failure)));
            return Some(Words::new(&tool, what, T::Warning, &format!("{tool} is called again")));
        }
        E::ToolNotCancelled(call) => {
            let what = format!("{} was not cancelled: {}", call.agent, call.message);
            ("tool".to_owned(), what, T::Warning, "no job waits for it")
        }
        E::ArtifactGenerated(made) => {
            let file = made.file.as_ref().filter(|file| !file.is_empty()).unwrap_or(&made.artifact_id);
            ("artifact".to_owned(), format!("{file}, {} bytes", made.bytes), T::Good, "exec: a file is kept")
        }
        E::BreakerOpened(breaker) => {
            let what = format!("circuit breaker opened; next try at {}", breaker.until);
            (text(&breaker.tool.as_ref().or(breaker.model.as_ref())), what, T::Warning, "exec")
        }
        _ => return None,
    };
    Some(Words::new(&tool, happened, tone, running))
}

/// Describes escalated errors and delegations.
fn of_delegate(body: &E) -> Option<Words> {
    use Tone as T;
    Some(match body {
        E::ErrorEscalated(error) => {
            let to = error.escalation.as_ref().and_then(|to| to.target.as_deref());
            let to = to.unwrap_or("the operators");
            let what = format!("{} is handed to {to}: {}", error.code, text(&error.message));
            Words::new("error", what, T::Bad, "is settled")
        }
        E::ErrorReplaced(error) => {
            let what = format!("{}; a value replaces the result", failure(error));
            Words::new("error", what, T::Warning, "is settled")
        }
        E::DelegationStarted(begun) => {
            let what = match begun.role {
                DelegationRole::Child => format!("works for job {} (depth {})", begun.job_id, begun.depth),
                DelegationRole::Parent => {
                    format!("is asked ({}): engagement {}", text(&begun.mode), text(&begun.engagement_id))
                }
            };
            Words::new(&begun.agent_id, what, T::Plain, "other agents work")
        }
        E::DelegationCompleted(ended) => {
            let tone = if ended.status == DelegationState::Success { T::Good } else { T::Warning };
            let (status, took) = (text(&ended.status), duration(ended.duration_ms));
            let what = format!("{status} in {took}, {} tokens", ended.tokens_used);
            Words::new(&ended.agent_id, what, tone, "waits for a worker")
        }
        _ => return None,
    })
}

/// Describes events of reviews, and answers of the user.
fn of_review(body: &E) -> Option<Words> {
    use Tone as T;
    let (happened, tone, running) = match body {
        E::InputReceived(answer) => {
            let what = format!("{} answered", answer.by);
            return Some(Words::new("input", what, T::Good, "waits for a worker"));
        }
        E::ReviewOpened(review) => {
            let (reviewer, tool) = (&review.reviewer, text(&review.name));
            let what = format!("asks {reviewer} about {tool}: review {}", review.review_id);
            (what, T::Warning, "waits for an answer")
        }
        E::ReviewVoted(vote) => {
            let word = if vote.approve { "yes" } else { "no" };
            let (reason, yes, no) = (after(": ", &vote.reason), vote.approvals, vote.rejections);
            let sums = format!("{yes} yes, {no} no; {} have to agree", vote.needed);
            (format!("{} says {word}{reason} ({sums})", vote.by), T::Plain, "waits for an answer")
        }
        E::ReviewReminded(review) => {
            let (reviewer, tool) = (&review.reviewer, text(&review.name));
            let what = format!("still asks {reviewer} about {tool}: review {}", review.review_id);
            (what, T::Warning, "waits for an answer")
        }
        E::ReviewEscalated(review) => {
            let (from, to, tool) = (&review.from, &review.reviewer, text(&review.name));
            let what =
                format!("{from} did not answer in time; asks {to} about {tool}: review {}", review.review_id);
            (what, T::Warning, "waits for an answer")
        }
        E::ReviewDecided(review) => {
            let tone = if review.state == ReviewState::Approved { T::Good } else { T::Warning };
            let (by, reason) = (text(&review.decided_by), after(": ", &review.reason));
            (format!("{} by {by}{reason}", text(&review.state)), tone, "waits for a worker")
        }
        E::ReviewAnsweredLate(answer) => {
            let what = format!("an answer of {} came too late and changes nothing", answer.by);
            (what, T::Warning, "running")
        }
        _ => return None,
    };
    Some(Words::new("review", happened, tone, running))
}

/// Describes budgets, filters, memory and state of an agent in a turn.
fn of_check(body: &E) -> Option<Words> {
    use Tone as T;
    let unit =
        |unit: Option<Measure>| if unit == Some(Measure::Money) { "millionths of money" } else { "tokens" };
    let (step, happened, tone, running) = match body {
        E::ReservationExceeded(call) => {
            let (reserved, booked) = (call.reserved, call.booked);
            let what = match &call.cost_booked {
                Some(cost) => {
                    format!("the call cost {cost}, more than was reserved for it ({booked} tokens)")
                }
                None => format!("the call used {booked} tokens, and {reserved} were reserved for it"),
            };
            ("budget", what, T::Warning, "infer")
        }
        E::UsageClamped(usage) => {
            let (reported, booked) = (usage.reported, usage.booked);
            let what = format!("the provider reported {reported} tokens; {booked} were booked");
            ("budget", what, T::Warning, "infer")
        }
        E::BudgetExceeded(budget) => {
            let (needed, unit) = (text(&budget.needed), unit(budget.unit));
            let (settled, limit) = (text(&budget.settled), text(&budget.limit));
            let whose = after(" of budget ", &budget.budget);
            let what = format!("the call needs {needed} {unit}; {settled} of {limit} are spent{whose}");
            ("budget", what, T::Bad, "infer")
        }
        E::BudgetWarning(budget) => {
            let whose = match &budget.budget {
                None => "the engagement's budget".to_owned(),
                Some(name) => format!("budget {name}"),
            };
            let unit = unit(Some(budget.unit));
            ("budget", format!("{}% of the {unit} of {whose} are spent", budget.percent), T::Warning, "infer")
        }
        E::ContentFlagged(flagged) => {
            let (found, action) = (text(&flagged.found), text(&flagged.action));
            ("filter", format!("{found} in {}: {action}", flagged.place), T::Warning, "running")
        }
        E::GuardrailChecked(check) => {
            let (verb, tone) = if check.passed { ("passed", T::Plain) } else { ("did not pass", T::Warning) };
            let what = format!("the {} guardrail {verb} ({})", text(&check.side), check.tool);
            ("guard", what, tone, "running")
        }
        E::MemoryRecalled(memory) => {
            let (messages, engagements) = (memory.messages, memory.engagements);
            let what = format!("{messages} messages of {engagements} earlier engagements are recalled");
            ("norm", what, T::Plain, "norm")
        }
        E::StateChanged(state) => ("persist", format!("state: {}", text(&state.changes)), T::Plain, "emit"),
        E::StateRolledBack(state) => {
            let what = format!("state rolled back, {}: {}", state.reason, text(&state.changes));
            ("persist", what, T::Warning, "is settled")
        }
        _ => return None,
    };
    Some(Words::new(step, happened, tone, running))
}

/// Returns a field as people read it; `?` where the event does not have it.
fn text(field: &impl Serialize) -> String {
    match json!(field) {
        Value::Null => "?".to_owned(),
        value => plain(&value),
    }
}

/// Returns the field after `lead`; nothing where the event does not have it.
fn after(lead: &str, field: &impl Serialize) -> String {
    match plain(field) {
        empty if empty.is_empty() => empty,
        field => format!("{lead}{field}"),
    }
}

fn failure(failure: &Failure) -> String {
    format!("{}: {}", failure.code, text(&failure.message))
}

/// Returns a duration of milliseconds, as people read it.
#[must_use]
pub fn duration(ms: impl Into<i128>) -> String {
    match ms.into() {
        ms @ 0..1_000 => format!("{ms} ms"),
        ms => format!("{}.{} s", ms / 1_000, ms % 1_000 / 100),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::dev::timeline::infer;
    use turnstone_domain::event::EventName;

    fn words(name: &str, data: Value) -> Words {
        of(&SeenEvent::read(&json!({"name": name, "turn": 1, "engagement_id": "e", "data": data, "at": 0})))
    }

    /// Returns a value that a schema describes.
    fn sample(schema: &Value, types: &Value, full: bool) -> Value {
        let list = |name: &str| schema[name].as_array().into_iter().flatten();
        if let Some(name) = schema["$ref"].as_str() {
            return sample(&types[name.rsplit('/').next().unwrap()], types, full);
        }
        if let Some(form) = list("oneOf").find(|form| form["type"] != "null") {
            return sample(form, types, full);
        }
        let mut members = serde_json::Map::new();
        for part in list("allOf") {
            members.extend(sample(part, types, full).as_object().cloned().unwrap_or_default());
        }
        let properties = schema["properties"].as_object().into_iter().flatten();
        for (name, member) in properties.filter(|(name, _)| full || list("required").any(|one| one == *name))
        {
            members.insert(name.clone(), sample(member, types, full));
        }
        match schema["type"].as_str().or_else(|| schema["type"][0].as_str()) {
            _ if schema["enum"].is_array() => schema["enum"][0].clone(),
            None | Some("object") if schema["allOf"].is_array() || schema["properties"].is_object() => {
                members.into()
            }
            Some("integer" | "number") => json!(7),
            Some("boolean") => json!(true),
            Some("array") => json!([sample(&schema["items"], types, full)]),
            Some("object") => json!({}),
            _ => json!("7"),
        }
    }

    /// Returns data of an event, with all members or without those that may be absent.
    fn sample_of(name: EventName, full: bool) -> Value {
        let mut types = Vec::new();
        let own = name.add_schemas(&mut types);
        let types: serde_json::Map<_, _> =
            types.into_iter().map(|(name, schema)| (name, json!(schema))).collect();
        sample(&types[own.as_ref()].clone(), &types.into(), full)
    }

    #[test]
    fn every_event_has_words_of_its_own() {
        for name in EventName::ALL {
            for full in [true, false] {
                let data = sample_of(*name, full);
                let said = words(name.as_str(), data.clone());
                assert!(!said.happened.is_empty() && !said.step.is_empty(), "{name}");
                assert_eq!(said.running.is_none(), name.ends_job(), "{name}");
                assert_ne!(said.step, name.as_str(), "{name} is shown with its data: {data}");
            }
        }
    }

    #[test]
    fn a_model_call_shows_tokens_and_what_is_left() {
        let said = of(&infer(1, "stop", 10));
        assert_eq!(said.happened, "m at p answered in 812 ms (stop)");
        assert_eq!((said.tokens, said.left, said.running.as_deref()), (Some(15), Some(47_686), Some("exec")));
        assert_eq!(duration(1_234), "1.2 s");
    }

    #[test]
    fn numbers_of_any_size_are_added_without_overflow() {
        assert_eq!(of(&infer(1, "stop", i64::MAX)).tokens, Some(i64::MAX));
    }

    #[test]
    fn an_event_of_a_newer_server_is_shown_as_it_is() {
        let said = words("engagement.renamed", json!({ "into": "x" }));
        assert_eq!((said.step.as_str(), said.happened.as_str()), ("engagement.renamed", r#"{"into":"x"}"#));
        let said = words("queue.paused", json!({ "queues": ["x"] }));
        assert_eq!((said.step.as_str(), said.happened.as_str()), ("queue.paused", r#"{"queues":["x"]}"#));
        let said = of(&infer(1, "a newer word", 10));
        assert!(said.step == "phase.completed" && said.happened.contains("a newer word"), "{said:?}");
    }
}
