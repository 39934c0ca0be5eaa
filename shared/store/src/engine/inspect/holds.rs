//! The values that columns may hold, where that is more than any text: documents of JSON, and words of a closed list.

use super::super::journal;
use super::super::rows::{Fields as _, FromField, Inconsistency, api_key, get};
use super::super::session::Row;
use super::super::workflows::WaitingJob;
use crate::{Directive, JobKind, PoolStrategy, WorkerKind, WorkerState};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use turnstone_domain::agent::delegation::{DelegationMode, DelegationState};
use turnstone_domain::agent::guardrails::Side;
use turnstone_domain::breaker::BreakerState;
use turnstone_domain::cron::{Missed, Outcome, Overlap};
use turnstone_domain::guardrail_check::GuardrailCall;
use turnstone_domain::retry::RetryPolicy;
use turnstone_domain::review::{ReviewKind, ReviewPlan, ReviewState, Vote};
use turnstone_domain::schema::Mode;
use turnstone_domain::terms::OnLimit;
use turnstone_domain::tool_call::{Handled, ToolCallState, ToolOutcome, Tried};
use turnstone_domain::turn_write::Position;
use turnstone_domain::webhook::{DeliveryState, WebhookFilter};
use turnstone_domain::workflow::{StepRole, StepState, WorkflowKind, WorkflowState};
use turnstone_domain::{AgentDefinition, JobError, JobId, JobState, RawJson, RawObject};

/// The values of one column.
pub(super) enum Holds {
    /// The value of a declared row, read from the column.
    Value(fn(&Row, &str) -> Result<(), String>),
    /// One of these words, or NULL.
    Words(&'static [&'static str]),
    /// A value that needs the whole row.
    Row(fn(&Row) -> Result<(), Inconsistency>),
}

impl Holds {
    /// Reads the column of a row.
    ///
    /// # Errors
    /// Says why its value is none of them.
    pub(super) fn check(&self, row: &Row, column: &str) -> Result<(), String> {
        match self {
            Self::Value(read) => read(row, column),
            Self::Words(words) => match row.text(column)? {
                Some(word) if !words.contains(&word) => Err(format!("`{word}` is unknown")),
                _ => Ok(()),
            },
            Self::Row(read) => read(row).map_err(Inconsistency::into_reason),
        }
    }
}

/// Reads a value as rows do.
const fn value<T: for<'r> FromField<'r>>() -> Holds {
    Holds::Value(|row, column| T::from_field(row, column).map(drop))
}

/// Parses a document, or takes NULL.
const fn document<T: DeserializeOwned>() -> Holds {
    Holds::Value(|row, column| match row.text(column)? {
        Some(text) => serde_json::from_str::<T>(text).map(drop).map_err(|error| error.to_string()),
        None => Ok(()),
    })
}

/// Tries are appended as objects with commas between them.
const TRIED: Holds = Holds::Value(|row, column| match row.text(column)? {
    Some(objects) => serde_json::from_str::<Vec<Tried>>(&format!("[{objects}]"))
        .map(drop)
        .map_err(|error| error.to_string()),
    None => Ok(()),
});

/// Checkpoints and events are in one text.
const BODY: Holds = Holds::Row(|row| {
    journal::checkpoints(row)?;
    journal::events(row).map(drop)
});

const ON_EXCEED: Holds = Holds::Words(&["retry", "park", "fail"]);

/// The columns of one table.
type Columns = &'static [(&'static str, Holds)];

macro_rules! tables {
    ($($table:ident { $($column:ident: $holds:expr,)+ })+) => {
        /// The columns by table; every other one holds any text, or a number.
        static TABLES: &[(&str, Columns)] = &[$((stringify!($table), &[$((stringify!($column), $holds),)+]),)+];
    };
}

tables! {
    queues { config: document::<Map<String, Value>>(), }
    pools { strategy: value::<PoolStrategy>(), config: document::<Map<String, Value>>(), }
    jobs {
        kind: value::<JobKind>(),
        state: value::<JobState>(),
        position: value::<Option<Position>>(),
        runtime_tags: value::<Option<Vec<String>>>(),
        on_limit: value::<Option<OnLimit>>(),
    }
    job_envelopes {
        retry: document::<RetryPolicy>(),
        args: value::<RawJson>(),
        meta: value::<RawObject>(),
        options: value::<RawObject>(),
        extra: value::<RawObject>(),
        parent_results: document::<Vec<RawJson>>(),
    }
    job_results { result: value::<RawJson>(), }
    job_errors { error: document::<JobError>(), }
    saved_states { state: value::<RawJson>(), }
    progress { data: value::<Option<RawJson>>(), }
    agent_definitions { definition: document::<AgentDefinition>(), }
    agents { tenants: value::<Option<Vec<String>>>(), }
    totals {
        scope: Holds::Words(&["engagement", "fleet", "tenant", "agent", "model"]),
        on_exceed: ON_EXCEED,
    }
    budget_rules { on_exceed: ON_EXCEED, }
    journal {
        body: BODY,
        said: Holds::Row(|row| journal::messages(row).map(drop)),
    }
    tool_calls {
        input: value::<Value>(),
        state: value::<ToolCallState>(),
        outcome: value::<Option<ToolOutcome>>(),
        tried: TRIED,
        handled: value::<Option<Handled>>(),
    }
    breakers { name: document::<Vec<String>>(), state: document::<BreakerState>(), }
    reviews {
        kind: value::<ReviewKind>(),
        question: value::<Value>(),
        state: value::<ReviewState>(),
        plan: value::<Option<ReviewPlan>>(),
        votes: value::<Option<Vec<Vote>>>(),
        reported: value::<Option<Value>>(),
    }
    guardrail_checks { side: value::<Side>(), content: document::<GuardrailCall>(), }
    delegations { mode: value::<DelegationMode>(), state: value::<DelegationState>(), }
    elsewhere { handle: document::<Value>(), }
    forks { changes: document::<Map<String, Value>>(), }
    state_keys { content: value::<Value>(), }
    credentials {
        kind: Holds::Words(&["user", "member", "static"]),
        form: Holds::Words(&["reference", "value"]),
    }
    api_keys {
        roles: Holds::Row(|row| api_key(row).map(drop)),
        acts_for: value::<Vec<String>>(),
    }
    runs { marks: document::<Value>(), }
    run_events { body: document::<Map<String, Value>>(), }
    run_settings { args: document::<Map<String, Value>>(), }
    rate_keys { asked: document::<Map<String, Value>>(), }
    crons {
        overlap_policy: value::<Overlap>(),
        missed_policy: value::<Missed>(),
        template: value::<RawObject>(),
    }
    cron_runs { outcome: value::<Outcome>(), }
    workflows {
        kind: value::<WorkflowKind>(),
        state: value::<WorkflowState>(),
        queues: value::<Option<Vec<String>>>(),
    }
    workflow_steps {
        role: value::<StepRole>(),
        needs: value::<Vec<i64>>(),
        next: value::<Vec<i64>>(),
        state: value::<StepState>(),
        job: document::<WaitingJob>(),
    }
    webhooks {
        events: value::<Vec<String>>(),
        filter: value::<WebhookFilter>(),
        metadata: value::<RawObject>(),
    }
    deliveries { body: document::<Value>(), state: value::<DeliveryState>(), }
    job_schemas { mode: value::<Mode>(), body: document::<Value>(), }
    idempotency_keys { pushed: document::<Vec<(JobId, JobState, bool)>>(), }
    workers {
        queues: value::<Vec<String>>(),
        state: value::<WorkerState>(),
        kind: value::<WorkerKind>(),
        directive: Holds::Value(|row, column| match row.text(column)? {
            Some(word) if Directive::parse(word).is_none() => Err(format!("`{word}` is unknown")),
            _ => Ok(()),
        }),
    }
    statistics { state: value::<JobState>(), }
}

/// Returns what the columns of a table hold.
pub(super) fn of_table(table: &str) -> Columns {
    TABLES.iter().find(|(name, _)| *name == table).map(|(_, columns)| *columns).unwrap_or_default()
}

/// The column that contradicts the others, and why.
type Contradiction = Option<(&'static str, String)>;

/// Returns why the values of a row contradict one another; the migrations say the same in CHECKs.
pub(super) fn contradiction(table: &str, row: &Row) -> Result<Contradiction, Inconsistency> {
    let has = |column: &str| match row.int(column) {
        Ok(number) => number.is_some(),
        Err(_) => row.text(column).is_ok_and(|text| text.is_some()),
    };
    let with = |word: &str, column: &'static str| -> Result<Contradiction, Inconsistency> {
        let state = get::<&str>(row, "state")?;
        let wrong = (state == word) != has(column);
        Ok(wrong.then(|| {
            (
                column,
                format!("state is `{state}`, and {column} is {}", if has(column) { "set" } else { "NULL" }),
            )
        }))
    };
    Ok(match table {
        "jobs" => super::super::rows::contradiction_of_job(row)?,
        "totals" => super::super::rows::contradiction_of_totals(row)?,
        "tool_calls" => with("settled", "outcome")?,
        "deliveries" => with("pending", "next_at")?,
        "reviews" | "delegations" | "workflows" => {
            let (open, at) = match table {
                "reviews" => ("open", "decided_at"),
                "delegations" => ("open", "ended_at"),
                _ => ("running", "ended_at"),
            };
            let state = get::<&str>(row, "state")?;
            ((state == open) == has(at)).then(|| (at, format!("state is `{state}`, and {at} contradicts it")))
        }
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::of_table;
    use std::collections::BTreeSet;

    /// A new column whose comment says JSON, or with a closed list of words, has to be listed here.
    #[test]
    fn every_document_and_every_closed_list_of_the_schema_is_checked() {
        let schema = include_str!("../../../../../migrations/sqlite/0001_baseline.sql");
        let (mut table, mut missing) = ("", BTreeSet::new());
        for line in schema.lines() {
            if let Some(rest) = line.strip_prefix("CREATE TABLE ") {
                table = rest.trim_end_matches(" (");
            }
            let mut words = line.split_whitespace();
            let (Some(column), Some("TEXT")) = (words.next(), words.next()) else { continue };
            let is_closed = line.contains("-- JSON") || line.contains(" IN ('");
            if is_closed && !of_table(table).iter().any(|(name, _)| *name == column) {
                missing.insert(format!("{table}.{column}"));
            }
        }
        assert!(missing.is_empty(), "{missing:?}");
    }
}
