//! The text of each event on the timeline.

use super::timeline::SeenEvent;
use crate::commands::job::question::Question;
use crate::commands::job::waiting::asks_user;
use serde_json::Value;
use turnstone_domain::Phase;
use turnstone_domain::event::EventName;

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
        let running = (!running.is_empty()).then(|| running.to_owned());
        Self {
            step: step.to_owned(),
            happened: happened.into(),
            tokens: None,
            left: None,
            tone,
            running,
            command: None,
        }
    }
}

/// Returns the words for an event; one that this version does not know is shown with its data.
#[must_use]
pub fn of(event: &SeenEvent) -> Words {
    let data = Fields(&event.data);
    match EventName::parse(&event.name) {
        Some(name) if event.name.starts_with("job.") || name == EventName::LeaseExpired => {
            of_job(name, &data)
        }
        Some(EventName::PhaseCompleted) => of_phase(&data),
        Some(EventName::InputRequested) => input_requested(event),
        Some(name) if !is_of_a_turn(&event.name) => around(name, &data),
        Some(name) => of_step(name, &data),
        None => Words::new(&event.name, event.data.to_string(), Tone::Plain, "running"),
    }
}

/// Returns true if an event belongs to a turn of an agent.
fn is_of_a_turn(name: &str) -> bool {
    !["agent.", "batch.", "budget.changed", "cron.", "engagement.", "queue.", "workflow."]
        .iter()
        .any(|prefix| name.starts_with(prefix))
}

/// Describes events around a job: control by operators, and its cron entry, workflow and queue.
fn around(name: EventName, data: &Fields<'_>) -> Words {
    use EventName as E;
    let (step, happened, running) = match name {
        E::AgentPaused => ("agent", format!("paused {}", data.text("reason")), "waits to be resumed"),
        E::AgentResumed => ("agent", format!("resumed {}", data.text("comment")), "waits for a worker"),
        E::EngagementForked => (
            "engagement",
            format!(
                "forked from {} at turn {}",
                data.text("forked_from"),
                data.number("at_turn").unwrap_or_default()
            ),
            "running",
        ),
        E::AgentForked => ("agent", format!("forked into {}", data.text("branch_id")), "running"),
        E::AgentMerged => ("agent", format!("merged into {}", data.text("merged_id")), "running"),
        E::ToolRetried => {
            ("agent", format!("call {} is made again", data.text("tool_call_id")), "waits for a worker")
        }
        E::CronTriggered => ("cron", format!("made by {}", data.text("cron_name")), "waits for a worker"),
        E::CronSkipped => {
            ("cron", format!("{} skipped a run because of this job", data.text("cron_name")), "running")
        }
        E::QueuePaused => ("queue", format!("{} was paused", data.text("queue")), "running"),
        E::BudgetChanged => ("budget", format!("{} was changed", data.text("subject")), "running"),
        E::BatchEnded => ("batch", format!("{} has ended", data.text("tag")), "running"),
        E::QueueResumed => ("queue", format!("{} was resumed", data.text("queue")), "running"),
        E::WorkflowStepCompleted => ("workflow", format!("step {} completed", data.text("step")), "running"),
        _ => {
            let what = name.as_str().rsplit('.').next().unwrap_or_default();
            ("workflow", format!("{} {what}", data.text("workflow_id")), "running")
        }
    };
    Words::new(step, happened, Tone::Plain, running)
}

fn of_job(name: EventName, data: &Fields<'_>) -> Words {
    use EventName as E;
    use Tone as T;
    let failure = || format!("{}: {}", data.text("code"), data.text("message"));
    let (happened, tone, running) = match name {
        E::JobEnqueued => (
            format!("{} is queued in {}", data.text("job_type"), data.text("queue")),
            T::Plain,
            "waits for a worker",
        ),
        E::JobStarted => (
            format!("attempt {} on worker {}", data.text("attempt"), data.text("worker_id")),
            T::Plain,
            "a turn begins",
        ),
        E::JobCompleted => {
            let by = data.after(" by ", "model_used");
            let mut words = Words::new("job", format!("completed{by}"), T::Good, "");
            words.tokens = data.number("tokens_used");
            return words;
        }
        E::JobScheduled => {
            (format!("scheduled for {}", data.text("scheduled_at")), T::Plain, "waits for its time")
        }
        E::JobRescheduled => (
            format!("put off to {}: {}", data.text("scheduled_at"), data.text("reason")),
            T::Plain,
            "waits for its time",
        ),
        E::JobCheckpointed => {
            (format!("its worker saved state {}", data.text("sequence")), T::Plain, "runs at its worker")
        }
        E::JobFailed => {
            (format!("attempt {} failed: {}", data.text("attempt"), failure()), T::Warning, "is settled")
        }
        E::JobRetrying => (
            format!(
                "tried again in {}{}: {}",
                data.span("retry_delay_ms"),
                data.after(", at ", "next_retry_at"),
                failure()
            ),
            T::Warning,
            "waits for the next attempt",
        ),
        E::JobDiscarded => (format!("discarded: {}", failure()), T::Bad, ""),
        E::JobCancelled => ("cancelled".to_owned(), T::Bad, ""),
        E::JobExpired => ("expired before it ended".to_owned(), T::Bad, ""),
        E::JobParked => return parked(data),
        E::JobAvailable => {
            let reason = match data.text("reason").as_str() {
                "manual_retry" => "it was retried".to_owned(),
                reason => reason.to_owned(),
            };
            (format!("available again: {reason}"), T::Plain, "waits for a worker")
        }
        E::JobYielded => (
            format!("given back between two phases: {}", data.text("reason")),
            T::Plain,
            "waits for a worker",
        ),
        E::LeaseExpired => {
            let what = format!(
                "worker {} stopped responding; another one resumes from the last checkpoint",
                data.text("worker_id")
            );
            (what, T::Warning, "waits for a worker")
        }
        other => (other.meaning().trim().to_owned(), T::Plain, "running"),
    };
    Words::new("job", happened, tone, running)
}

/// Returns the unit of a budget.
fn unit(data: &Fields<'_>) -> &'static str {
    if data.text("unit") == "money" { "millionths of money" } else { "tokens" }
}

fn parked(data: &Fields<'_>) -> Words {
    if data.has("children") {
        let happened =
            format!("parked until {} agents have answered; no slot is held", data.text("children"));
        return Words::new("job", happened, Tone::Plain, "other agents work");
    }
    if data.text("kind") == "budget" {
        let name = data.text("budget");
        let again = data.after(", or begins anew at ", "until");
        let whose = if name == "engagement" { "its own budget".to_owned() } else { format!("budget {name}") };
        let happened = format!("parked until {whose} is raised{again}; no slot is held");
        return Words::new("job", happened, Tone::Warning, &format!("waits for {whose}"));
    }
    if asks_user(data.0) {
        let happened = "parked until its user answers; no slot is held";
        return Words::new("job", happened, Tone::Warning, "waits for an answer of its user");
    }
    let approve = format!("turnstone review approve {} --by NAME", data.text("review_id"));
    let running = format!("waits for an answer: {approve}");
    let happened = format!("parked until {} answers; no slot is held", data.text("reviewer"));
    Words { command: Some(approve), ..Words::new("job", happened, Tone::Warning, &running) }
}

/// Describes a question to the user, with the command that answers it.
fn input_requested(event: &SeenEvent) -> Words {
    let question =
        Question::read(&event.engagement, event.data["call_id"].as_str(), event.data.get("request_keys"));
    let requested = question.as_ref().map(Question::asked).unwrap_or_default();
    let words =
        Words::new("input", format!("asks the user: {requested}"), Tone::Warning, "waits for an answer");
    Words { command: question.map(|question| question.command()), ..words }
}

/// Returns how the model answered, from the data of the completed phase infer.
#[must_use]
pub fn answered(data: &Value) -> String {
    let data = Fields(data);
    let (provider, took) = (data.after(" at ", "provider"), data.duration("duration_ms"));
    format!("{}{provider} answered in {took} ({})", data.text("model"), data.text("finish_reason"))
}

fn of_phase(data: &Fields<'_>) -> Words {
    let phase = data.text("phase");
    let known = Phase::ALL.into_iter().find(|known| known.as_str() == phase);
    let running = match known.and_then(Phase::next) {
        Some(Phase::Infer) => "infer: the model is called",
        Some(next) => next.as_str(),
        None => "the next turn",
    };
    if known != Some(Phase::Infer) {
        let took = data.duration("duration_ms");
        return Words::new(&phase, format!("done in {took}"), Tone::Quiet, running);
    }
    let mut happened = answered(data.0);
    happened.push_str(&data.after(": ", "text"));
    let mut words = Words::new(&phase, happened, Tone::Plain, running);
    let tokens = [data.number("tokens_in"), data.number("tokens_out")];
    words.tokens = tokens
        .iter()
        .any(Option::is_some)
        .then(|| tokens.iter().flatten().fold(0, |sum: i64, n| sum.saturating_add(*n)));
    words.left = data.number("budget_left");
    words
}

fn of_step(name: EventName, data: &Fields<'_>) -> Words {
    use EventName as E;
    use Tone as T;
    let tool = data.text("name");
    match name {
        E::ModelFailed => {
            let what = format!(
                "{} at {} did not answer: {}",
                data.text("model"),
                data.text("provider"),
                data.text("message")
            );
            Words::new("infer", what, T::Warning, "infer: the next model is called")
        }
        E::ToolUnavailable => {
            Words::new(&tool, format!("not available: {}", data.text("message")), T::Warning, "resol")
        }
        E::ToolCalled => Words::new(
            &tool,
            format!("called with {}", data.text("input")),
            T::Plain,
            &format!("{tool} is called"),
        ),
        E::ToolCompleted => {
            let output = data.after(": ", "output");
            Words::new(
                &tool,
                format!("answered in {}{output}", data.duration("duration_ms")),
                T::Plain,
                "exec",
            )
        }
        E::ArtifactGenerated => {
            let file = if data.has("file") { data.text("file") } else { data.text("artifact_id") };
            Words::new(
                "artifact",
                format!("{file}, {} bytes", data.text("bytes")),
                T::Good,
                "exec: a file is kept",
            )
        }
        E::ToolFailed => {
            Words::new(&tool, format!("{}: {}", data.text("code"), data.text("message")), T::Warning, "exec")
        }
        E::ModelRetrying => {
            let next = format!("asked again in {}", data.duration("delay_ms"));
            Words::new(
                "infer",
                format!("{}: {}; {next}", data.text("code"), data.text("message")),
                T::Warning,
                "infer: the models are called again",
            )
        }
        E::ToolRetrying => {
            let next = match data.has("instead") {
                true => format!("{} is called instead", data.text("instead")),
                false => format!("retry {} in {}", data.text("retry"), data.duration("delay_ms")),
            };
            let what = format!("{}: {}; {next}", data.text("code"), data.text("message"));
            Words::new(&tool, what, T::Warning, &format!("{tool} is called again"))
        }
        other => of_others(other, data),
    }
}

/// Describes escalated errors and delegations.
fn of_others(name: EventName, data: &Fields<'_>) -> Words {
    use EventName as E;
    use Tone as T;
    match name {
        E::ToolNotCancelled => {
            let what = format!("{} was not cancelled: {}", data.text("agent"), data.text("message"));
            Words::new("tool", what, T::Warning, "no job waits for it")
        }
        E::BreakerOpened => {
            let who = if data.has("tool") { data.text("tool") } else { data.text("model") };
            let what = format!("circuit breaker opened; next try at {}", data.text("until"));
            Words::new(&who, what, T::Warning, "exec")
        }
        E::ErrorEscalated => {
            let to = data.0.pointer("/escalation/target").and_then(Value::as_str).unwrap_or("the operators");
            let what = format!("{} is handed to {to}: {}", data.text("code"), data.text("message"));
            Words::new("error", what, T::Bad, "is settled")
        }
        E::ErrorReplaced => {
            let what =
                format!("{}: {}; a value replaces the result", data.text("code"), data.text("message"));
            Words::new("error", what, T::Warning, "is settled")
        }
        E::DelegationStarted => {
            let what = match data.text("role").as_str() {
                "child" => format!("works for job {} (depth {})", data.text("job_id"), data.text("depth")),
                _ => format!("is asked ({}): engagement {}", data.text("mode"), data.text("engagement_id")),
            };
            Words::new(&data.text("agent_id"), what, T::Plain, "other agents work")
        }
        E::DelegationCompleted => {
            let status = data.text("status");
            let tone = if status == "success" { T::Good } else { T::Warning };
            let what =
                format!("{status} in {}, {} tokens", data.duration("duration_ms"), data.text("tokens_used"));
            Words::new(&data.text("agent_id"), what, tone, "waits for a worker")
        }
        other => of_reviews(other, data),
    }
}

/// Describes events of reviews.
fn of_reviews(name: EventName, data: &Fields<'_>) -> Words {
    use EventName as E;
    use Tone as T;
    let tool = data.text("name");
    match name {
        E::InputReceived => {
            Words::new("input", format!("{} answered", data.text("by")), T::Good, "waits for a worker")
        }
        E::ReviewOpened => {
            let what =
                format!("asks {} about {tool}: review {}", data.text("reviewer"), data.text("review_id"));
            Words::new("review", what, T::Warning, "waits for an answer")
        }
        E::ReviewVoted => {
            let word = if data.text("approve") == "true" { "yes" } else { "no" };
            let (yes, no, needed) = (data.text("approvals"), data.text("rejections"), data.text("needed"));
            let reason = data.after(": ", "reason");
            let what = format!(
                "{} says {word}{reason} ({yes} yes, {no} no; {needed} have to agree)",
                data.text("by")
            );
            Words::new("review", what, T::Plain, "waits for an answer")
        }
        E::ReviewReminded => {
            let what = format!(
                "still asks {} about {tool}: review {}",
                data.text("reviewer"),
                data.text("review_id")
            );
            Words::new("review", what, T::Warning, "waits for an answer")
        }
        E::ReviewEscalated => {
            let (from, to) = (data.text("from"), data.text("reviewer"));
            let what = format!(
                "{from} did not answer in time; asks {to} about {tool}: review {}",
                data.text("review_id")
            );
            Words::new("review", what, T::Warning, "waits for an answer")
        }
        E::ReviewDecided => {
            let reason = data.after(": ", "reason");
            let tone = if data.text("state") == "approved" { T::Good } else { T::Warning };
            Words::new(
                "review",
                format!("{} by {}{reason}", data.text("state"), data.text("decided_by")),
                tone,
                "waits for a worker",
            )
        }
        E::ReviewAnsweredLate => Words::new(
            "review",
            format!("an answer of {} came too late and changes nothing", data.text("by")),
            T::Warning,
            "running",
        ),
        other => of_decisions(other, data),
    }
}

/// Describes events of budgets and checks of the answer.
fn of_decisions(name: EventName, data: &Fields<'_>) -> Words {
    use EventName as E;
    use Tone as T;
    match name {
        E::UsageClamped => {
            let what = format!(
                "the provider reported {} tokens; {} were booked",
                data.text("reported"),
                data.text("booked")
            );
            Words::new("budget", what, T::Warning, "infer")
        }
        E::BudgetExceeded => {
            let what = format!(
                "the call needs {} {}; {} of {} are spent{}",
                data.text("needed"),
                unit(data),
                data.text("settled"),
                data.text("limit"),
                data.after(" of budget ", "budget")
            );
            Words::new("budget", what, T::Bad, "infer")
        }
        E::BudgetWarning => {
            let whose = match data.has("budget") {
                false => "the engagement's budget".to_owned(),
                true => format!("budget {}", data.text("budget")),
            };
            let what = format!("{}% of the {} of {whose} are spent", data.text("percent"), unit(data));
            Words::new("budget", what, T::Warning, "infer")
        }
        E::OutputRejected => Words::new(
            "infer",
            format!("the answer is refused, asked once more: {}", data.text("message")),
            T::Warning,
            "infer: the model is called again",
        ),
        other => of_keeping(other, data),
    }
}

/// Describes the filters, memory and state of an agent in a turn.
fn of_keeping(name: EventName, data: &Fields<'_>) -> Words {
    use EventName as E;
    use Tone as T;
    match name {
        E::ContentFlagged => {
            let what = format!("{} in {}: {}", data.text("found"), data.text("where"), data.text("action"));
            Words::new("filter", what, T::Warning, "running")
        }
        E::GuardrailChecked => {
            let passed = data.0["passed"] == true;
            let verb = if passed { "passed" } else { "did not pass" };
            let what = format!("the {} guardrail {verb} ({})", data.text("side"), data.text("tool"));
            Words::new("guard", what, if passed { T::Plain } else { T::Warning }, "running")
        }
        E::HistorySummarized => {
            let what = format!("{} messages were summed up by {}", data.text("messages"), data.text("model"));
            let mut words = Words::new("infer", what, T::Plain, "infer: the model is called");
            let tokens = [data.number("tokens_in"), data.number("tokens_out")];
            words.tokens = Some(tokens.iter().flatten().fold(0, |sum: i64, n| sum.saturating_add(*n)));
            words
        }
        E::MemoryRecalled => {
            let what = format!(
                "{} messages of {} earlier engagements are recalled",
                data.text("messages"),
                data.text("engagements")
            );
            Words::new("norm", what, T::Plain, "norm")
        }
        E::StateChanged => {
            Words::new("persist", format!("state: {}", data.text("changes")), T::Plain, "emit")
        }
        E::StateRolledBack => {
            let what = format!("state rolled back, {}: {}", data.text("reason"), data.text("changes"));
            Words::new("persist", what, T::Warning, "is settled")
        }
        other => Words::new(other.as_str(), other.meaning().trim(), T::Plain, "running"),
    }
}

/// The data of an event, as text.
struct Fields<'a>(&'a Value);

impl Fields<'_> {
    fn has(&self, name: &str) -> bool {
        !matches!(&self.0[name], Value::Null) && self.0[name] != ""
    }

    fn text(&self, name: &str) -> String {
        match &self.0[name] {
            Value::Null => "?".to_owned(),
            Value::String(text) => text.clone(),
            other => other.to_string(),
        }
    }

    /// Returns the field after `lead`; nothing when the event does not have the field.
    fn after(&self, lead: &str, name: &str) -> String {
        if self.has(name) { format!("{lead}{}", self.text(name)) } else { String::new() }
    }

    fn number(&self, name: &str) -> Option<i64> {
        self.0[name].as_i64()
    }

    /// Returns a duration that people wait for.
    fn span(&self, name: &str) -> String {
        match self.number(name) {
            Some(ms) if ms >= 60_000 => crate::output::text::span(ms),
            _ => self.duration(name),
        }
    }

    fn duration(&self, name: &str) -> String {
        duration(self.number(name))
    }
}

/// Returns a duration of milliseconds, as people read it.
#[must_use]
pub fn duration(ms: Option<i64>) -> String {
    match ms {
        None => "an unknown time".to_owned(),
        Some(ms @ 0..1_000) => format!("{ms} ms"),
        Some(ms) => format!("{}.{} s", ms / 1_000, ms % 1_000 / 100),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use turnstone_domain::Timestamp;

    fn words(name: &str, data: Value) -> Words {
        of(&SeenEvent { name: name.into(), turn: 1, engagement: "e".into(), data, at: Timestamp(0) })
    }

    #[test]
    fn every_event_has_words_of_its_own() {
        for name in EventName::ALL {
            let said = words(name.as_str(), json!({}));
            assert!(!said.happened.is_empty() && !said.step.is_empty(), "{name}");
            assert_eq!(said.running.is_none(), name.ends_job(), "{name}");
            assert_ne!(said.happened, name.meaning().trim(), "{name} fell through to the general wording");
        }
    }

    #[test]
    fn a_model_call_shows_tokens_and_what_is_left() {
        let data = json!({ "phase": "infer", "duration_ms": 1234, "model": "m", "provider": "p", "tokens_in": 10,
            "tokens_out": 5, "finish_reason": "stop", "budget_left": 85, "text": "hi" });
        let said = words("phase.completed", data);
        assert_eq!(said.happened, "m at p answered in 1.2 s (stop): hi");
        assert_eq!((said.tokens, said.left, said.running.as_deref()), (Some(15), Some(85), Some("exec")));
    }

    #[test]
    fn numbers_of_any_size_are_added_without_overflow() {
        let data = json!({ "phase": "infer", "tokens_in": i64::MAX, "tokens_out": 5 });
        assert_eq!(words("phase.completed", data).tokens, Some(i64::MAX));
    }

    #[test]
    fn an_event_of_a_newer_server_is_shown_as_it_is() {
        let said = words("engagement.renamed", json!({ "into": "x" }));
        assert_eq!((said.step.as_str(), said.happened.as_str()), ("engagement.renamed", r#"{"into":"x"}"#));
    }
}
