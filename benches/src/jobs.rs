//! The jobs that are measured with.

use serde_json::json;
use turnstone_domain::agent::{Limits, ModelRef};
use turnstone_domain::engagement::{NewEngagement, User};
use turnstone_domain::ids::SystemIds;
use turnstone_domain::job::Envelope;
use turnstone_domain::retry::RetryPolicy;
use turnstone_domain::{AgentDefinition, Clock as _, Ids as _, JobId, NewJob, RawJson, SystemClock};
use turnstone_store::JobKind;

/// The queue of every job of a measurement; workers of a measurement serve no other.
pub const QUEUE: &str = "turnstone-bench";
/// The provider that agents of a measurement name; no configuration should have one of this name.
pub const PROVIDER: &str = "turnstone-bench";
/// The input of each job: about as long as a short request of a user.
const WORDS: &str = "Compare the three suppliers of the attached list by price, delivery time and the number of \
    complaints in the last quarter, name the one you would choose, and say in two sentences why; if a figure is \
    missing, say which one and do not guess. Write for a reader who has a minute, and do not repeat the list.";
/// Returns a plain OJS job.
#[must_use]
pub fn plain() -> NewJob {
    let now = SystemClock.now();
    NewJob {
        id: JobId(SystemIds.next()),
        job_type: "bench.plain".to_owned(),
        queue: QUEUE.to_owned(),
        priority: 0,
        run_at: now,
        expires_at: None,
        timeout_ms: None,
        retry: RetryPolicy::default(),
        envelope: Envelope { args: RawJson::of(&json!([WORDS])), ..Envelope::default() },
        engagement: None,
        terms: turnstone_domain::Terms::default(),
        created_at: now,
    }
}

/// Returns a job of an agent with a budget of its own and without tools.
#[must_use]
pub fn agent() -> NewJob {
    let limits = Limits { token_budget: Some(50_000), ..Limits::default() };
    of(AgentDefinition { limits, ..model() })
}

/// Returns a job of this agent.
#[must_use]
pub fn of(agent: AgentDefinition) -> NewJob {
    let engagement = NewEngagement { id: SystemIds.next().into(), agent, user: User::default(), depth: 0 };
    NewJob { job_type: "bench.agent".to_owned(), engagement: Some(engagement), ..plain() }
}

/// Returns a job of this agent with another input.
#[must_use]
pub fn agent_job(agent: AgentDefinition, says: &str) -> NewJob {
    let envelope = Envelope { args: RawJson::of(&json!([says])), ..Envelope::default() };
    NewJob { envelope, ..of(agent) }
}

/// Returns `count` jobs of a kind. Agents use the default model of the server, and have no budget of their own.
#[must_use]
pub fn several(kind: JobKind, count: usize) -> Vec<NewJob> {
    let job = || match kind {
        JobKind::Plain => plain(),
        JobKind::Agent => of(named()),
    };
    (0..count).map(|_| job()).collect()
}

/// Returns `count` jobs of an agent that uses the default model of the server.
#[must_use]
pub fn saying(count: usize, says: &str) -> Vec<NewJob> {
    (0..count).map(|_| agent_job(named(), says)).collect()
}

fn named() -> AgentDefinition {
    AgentDefinition { name: "bench.agent".to_owned(), ..AgentDefinition::default() }
}

/// Returns an agent that uses the model of the measurement.
#[must_use]
pub fn model() -> AgentDefinition {
    let model = ModelRef { provider: Some(PROVIDER.to_owned()), model: "noop".to_owned() };
    let mut agent = named();
    agent.model.models = vec![model];
    agent
}
