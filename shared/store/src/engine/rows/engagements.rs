//! Rows of engagements, their budgets, their state and the delegations between them.

use super::{Fields, Inconsistency, Stored, declare, get, json};
use crate::ListedEngagement;
use std::borrow::Cow;
use turnstone_domain::agent::delegation::{DelegationMode, DelegationState};
use turnstone_domain::budget::{Budget, OnExceed, Purse};
use turnstone_domain::engagement::{Engagement, User};
use turnstone_domain::fork::{ForkPoint, Origin};
use turnstone_domain::{EngagementId, Phase, RecordEnd, Timestamp};

declare! {
    /// An engagement with its counters and its budget.
    #[derive(Clone, Debug)]
    struct EngagementRow in engagements [id] {
        seq: i64,
        engagement: Engagement => with engagement,
        digest: String,
        budget_seq: i64,
        events: i64,
        messages: i64,
        /// 0 for one that is no child.
        depth: i64,
        /// The job that it works for.
        parent_seq: Option<i64>,
        /// Engagements that ever worked for it.
        children: i64,
        /// Jobs that ever carried an input into it.
        inputs: i64,
        /// The budgets that it pays into beside that of its tree, because it or one above it has a limit of its own.
        limited_by: Vec<String> => with limited_by,
        budget: Budget => with budget,
        /// The jobs that its tree ever had.
        tree_jobs: i64,
        /// The end of its record.
        record_end: RecordEnd => with record_end,
        /// The counters as they were when the row was read.
        read: ReadCounters => with read_counters,
    }

    /// A new engagement.
    struct NewEngagementRow into engagements [id] {
        seq: i64,
        id: EngagementId,
        agent_name: String,
        digest: String,
        user_id: String,
        user_email: Option<String> => sealed,
        started_at: Timestamp,
        budget_seq: i64,
        depth: i64,
        parent_seq: Option<i64>,
        limited_by: Option<String>,
        retention_ms: Option<i64>,
    }

    /// The totals of a new engagement. What a delegate may spend within its tree has a name.
    struct NewTotals into totals [seq] {
        seq: i64,
        events: i64,
        scope: Cow<'static, str>,
        name: Option<String>,
        day: Option<i64>,
        token_limit: Option<i64>,
        money_limit: Option<i64>,
    }

    /// How totals are moved: counters to what they are now, amounts by differences, and the bounds within which what is
    /// spent has to lie.
    struct TotalsMove {
        seq: i64,
        turns: Option<i64>,
        events: Option<i64>,
        messages: Option<i64>,
        writes: Option<i64>,
        turn: Option<i64>,
        phase: Option<i64>,
        read_events: Option<i64>,
        read_messages: Option<i64>,
        read_writes: Option<i64>,
        settled: i64,
        reserved: i64,
        money_settled: i64,
        money_reserved: i64,
        least: i64,
        most: i64,
        money_least: i64,
        money_most: i64,
        granted: Option<i64>,
        money_granted: Option<i64>,
    }

    /// A job that waits for a budget: a shared one by name and day, or that of its engagement.
    struct WaitRow {
        job_seq: i64,
        budget_seq: i64,
        name: Option<String>,
        day: i64,
        attempt: i64,
        due_at: Option<Timestamp>,
    }

    /// A shared budget on a day.
    #[derive(Clone)]
    struct BudgetDay {
        name: String,
        day: i64,
    }

    /// Further inputs that an engagement got, and its events.
    struct InputCount {
        seq: i64,
        events: i64,
        inputs: i64,
    }

    /// Children that an engagement got, and jobs that its tree got if it is a root.
    #[derive(Default)]
    struct ChildCount {
        seq: i64,
        many: i64,
        tree_jobs: i64,
    }

    /// An agent definition, as a text of JSON.
    #[derive(PartialEq, Eq, PartialOrd, Ord)]
    struct DefinitionRow in agent_definitions [digest] {
        digest: String,
        definition: String => sealed,
    }

    /// A registered agent.
    struct AgentRow in agents [name] {
        name: String,
        digest: String,
        source: String => sealed,
        updated_at: Timestamp,
        source_digest: String,
        tenants: Option<Vec<String>>,
    }

    /// A definition with which an agent was registered.
    struct RegisteredDigest into registered_digests [name, digest] {
        name: String,
        digest: String,
    }

    /// The agent of an input.
    struct InputDefinition into input_definitions [job_seq] {
        job_seq: i64,
        digest: String,
        retention_ms: Option<i64>,
    }

    /// The agent of an engagement, and how long that one wants the conversation kept.
    struct EngagementAgent {
        seq: i64,
        digest: String,
        retention_ms: Option<i64>,
    }

    /// The input that gives an engagement its agent.
    struct BegunInput {
        seq: i64,
        job_seq: i64,
    }

    /// A job that works for another one.
    struct DelegationRow into delegations [job_seq] {
        job_seq: i64,
        parent_seq: i64,
        call_id: Option<String>,
        turn: i64,
        agent: String,
        mode: DelegationMode,
        started_at: Timestamp,
        deadline_at: Option<Timestamp>,
        state: DelegationState,
    }

    /// The end of a delegation.
    struct DelegationEnd {
        job_seq: i64,
        state: DelegationState,
        ended_at: Timestamp,
    }

    /// Where an engagement was forked from; the changes are a text of JSON.
    struct ForkRow into forks [engagement_seq] {
        engagement_seq: i64,
        parent_id: EngagementId,
        at_turn: i64,
        phase: Phase,
        live_tools: bool,
        changes: String => sealed,
        created_at: Timestamp,
    }

    /// An exchange that is remembered.
    struct NewMemory {
        seq: i64,
        began: i64,
        ended: i64,
        rules: String,
        at: Timestamp,
    }

    /// A scope of state that was never written.
    struct NewScope into state_scopes [name] {
        name: String,
        engagement_seq: Option<i64>,
        version: i64,
        updated_at: Timestamp,
    }

    /// The version of a scope of state.
    struct ScopeVersion {
        name: String,
        version: i64,
        at: Timestamp,
    }

    /// A value of an agent's state, as a text of JSON.
    struct StateKey into state_keys [scope, name] {
        scope: String,
        name: String,
        content: String => sealed,
        version: i64,
        updated_at: Timestamp,
        expires_at: Option<Timestamp>,
    }

    /// The name of a value of an agent's state.
    #[derive(PartialEq, Eq, PartialOrd, Ord)]
    struct StateKeyName {
        scope: String,
        name: String,
    }
}

/// The amounts of a budget.
pub(in super::super) fn budget(row: &impl Fields) -> Result<Budget, Inconsistency> {
    let on_exceed = get::<Option<&str>>(row, "on_exceed")?.and_then(OnExceed::parse);
    Ok(Budget {
        limit: get(row, "token_limit")?,
        settled: get(row, "settled")?,
        reserved: get(row, "reserved")?,
        money: Purse {
            limit: get(row, "money_limit")?,
            settled: get(row, "money_settled")?,
            reserved: get(row, "money_reserved")?,
        },
        on_exceed,
        warn_at: get(row, "warn_at")?,
    })
}

/// Returns which column of a budget contradicts the others, and why.
pub(in super::super) fn contradiction_of_totals(
    row: &impl Fields,
) -> Result<Option<(&'static str, String)>, Inconsistency> {
    let budget = budget(row)?;
    let amounts = [
        ("settled", budget.settled),
        ("reserved", budget.reserved),
        ("money_settled", budget.money.settled),
        ("money_reserved", budget.money.reserved),
    ];
    let negative = amounts.into_iter().find(|(_, amount)| *amount < 0);
    Ok(negative.map(|(column, amount)| (column, format!("it is {amount}"))))
}

/// An engagement itself, of a row with its turns.
fn engagement(row: &impl Fields) -> Result<Engagement, Inconsistency> {
    Ok(Engagement {
        id: get(row, "id")?,
        agent: get(row, "agent_name")?,
        user: User { id: get(row, "user_id")?, email: get(row, "user_email")? },
        started_at: get(row, "started_at")?,
        turns: get(row, "turns")?,
    })
}

fn limited_by(row: &impl Fields) -> Result<Vec<String>, Inconsistency> {
    let names: Option<&str> = get(row, "limited_by")?;
    Ok(names.map(|names| names.split(' ').map(str::to_owned).collect()).unwrap_or_default())
}

fn record_end(row: &impl Fields) -> Result<RecordEnd, Inconsistency> {
    let phase = Phase::from_index(get(row, "phase")?);
    Ok(RecordEnd { writes: get(row, "writes")?, turn: get(row, "turn")?, phase })
}

/// The counters of an engagement as they were when its row was read. Each change of the row changes one of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ReadCounters {
    pub events: i64,
    pub messages: i64,
    pub writes: i64,
}

fn read_counters(row: &impl Fields) -> Result<ReadCounters, Inconsistency> {
    Ok(ReadCounters {
        events: get(row, "events")?,
        messages: get(row, "messages")?,
        writes: get(row, "writes")?,
    })
}

impl EngagementRow {
    /// Returns true when other engagements spend from the same budget, or may.
    pub(in super::super) fn shares_budget(&self) -> bool {
        self.parent_seq.is_some() || self.children > 0
    }

    pub(in super::super) fn decode(row: &impl Fields) -> Result<Self, Inconsistency> {
        Stored::decode(row)
    }
}

pub(in super::super) fn listed_engagement(row: &impl Fields) -> Result<ListedEngagement, Inconsistency> {
    Ok(ListedEngagement {
        position: get(row, "seq")?,
        engagement: engagement(row)?,
        job_id: get(row, "job_id")?,
        job_state: get(row, "state")?,
    })
}

/// Where an engagement was forked from.
pub(in super::super) fn origin(row: &impl Fields) -> Result<Origin, Inconsistency> {
    Ok(Origin {
        engagement_id: get(row, "parent_id")?,
        point: ForkPoint { turn: get(row, "at_turn")?, phase: get(row, "phase")? },
        live_tools: get(row, "live_tools")?,
        changes: json(row, "changes")?,
    })
}

impl NewScope {
    pub(in super::super) fn of(name: &str, engagement_seq: Option<i64>, at: Timestamp) -> Self {
        Self { name: name.to_owned(), engagement_seq, version: 0, updated_at: at }
    }
}
