//! A branch: a new job, with an engagement of its own, that takes over turns of others.

use super::super::push;
use super::Done;
use super::copy::{self, Past, Segment};
use super::hold;
use crate::control::{Branch, Refusal};
use crate::engine::limit_name;
use crate::engine::rows::{self, BranchRow, JobRow};
use crate::engine::session::Session;
use crate::engine::statement::{Writes, read, read_by};
use crate::engine::unit::Unit;
use crate::{Ring, StoreError, sql};
use std::collections::BTreeMap;
use turnstone_domain::engagement::NewEngagement;
use turnstone_domain::principal::SUBMITTED_BY;
use turnstone_domain::terms::RateLimit;
use turnstone_domain::turn_write::Position;
use turnstone_domain::{AgentDefinition, EngagementId, Ids, JobId, NewJob, Terms, Timestamp, digest};

/// A branch that is to be made.
pub(in super::super) struct Wanted<'a> {
    /// The job whose envelope, agent and limits it has.
    pub like: i64,
    /// The job that all branches come from.
    pub root: i64,
    /// The name of the branch.
    pub name: Option<&'a str>,
    /// The turns that it takes over.
    pub segments: Vec<Segment>,
    /// Its first turn of its own.
    pub at_turn: i64,
    /// Its position, when it is known; otherwise it is computed from the turns that it takes over.
    pub position: Option<Position>,
    /// The digests of the turns that it takes over, by turn.
    pub contents: Vec<String>,
    /// True when its job is paused.
    pub held: bool,
    /// The id of its job.
    pub job: &'a JobId,
    /// The id of its engagement.
    pub engagement: &'a EngagementId,
    /// The identity of the principal that submits it; without one, it is that of the other job.
    pub by: Option<&'a str>,
    /// Now.
    pub at: Timestamp,
}

/// The job that a job comes from first: itself, unless it is a branch.
pub(super) async fn root(session: &mut Session, job_seq: i64) -> Result<i64, StoreError> {
    let values = [job_seq.into()];
    let found = read(session, "look for a branch", &sql::SELECT_BRANCH_ROOT, &values, |row| {
        rows::get::<i64>(row, "root_seq")
    });
    Ok(found.await?.pop().unwrap_or(job_seq))
}

/// Returns the job that a name means among the branches of a root.
pub(super) async fn named(session: &mut Session, root: i64, name: &str) -> Result<Option<JobId>, StoreError> {
    let values = [root.into(), name.into()];
    let found = read(session, "look for a branch", &sql::SELECT_BRANCH_BY_NAME, &values, |row| {
        rows::get::<String>(row, "id").map(JobId)
    });
    Ok(found.await?.into_iter().next())
}

/// The engagement of a job that was taken in.
pub(super) fn past(unit: &Unit, seq: i64) -> Option<Past> {
    let engagement_seq = unit.engagement_of(seq)?.seq;
    Some(Past { job_seq: seq, engagement_seq })
}

/// Makes a branch, in this transaction.
pub(super) async fn make(
    session: &mut Session,
    unit: &mut Unit,
    wanted: Wanted<'_>,
    ids: &dyn Ids,
) -> Done<Branch> {
    if let Some(name) = wanted.name
        && named(session, wanted.root, name).await?.is_some()
    {
        return Ok(Err(Refusal::NameTaken(name.to_owned())));
    }
    let (job, content) = like(session, unit, &wanted).await?;
    let mut pushing = Unit::default();
    let pushed = push::apply(session, &mut pushing, &[std::slice::from_ref(&job)], None).await?;
    pushed.into_iter().collect::<Result<Vec<_>, _>>()?;
    unit.rings.append(&mut pushing.rings);
    unit.ended.append(&mut pushing.ended);
    unit.tree_ends.append(&mut pushing.tree_ends);
    let keys = vec![job.id.clone()];
    let rows = read_by(session, "read a job", &sql::LOCK_JOBS, keys, JobRow::decode).await?;
    unit.take_in(session, rows).await?;
    let Some(seq) = unit.seq_of(&job.id) else { return Ok(Err(Refusal::NoJob)) };
    if wanted.held {
        hold(session, unit, seq, true).await?;
    }
    take_over(session, unit, seq, &wanted, ids).await?;
    let id = if job.engagement.is_some() { wanted.engagement.as_str() } else { job.id.as_str() };
    let mut writes = Writes::default();
    let row = BranchRow {
        job_seq: seq,
        id: id.to_owned(),
        name: wanted.name.map(str::to_owned),
        root_seq: wanted.root,
        parent_seq: wanted.like,
        at_turn: wanted.at_turn,
        created_at: wanted.at,
    };
    writes.insert("remember a branch", vec![row]);
    writes.run(session).await?;
    unit.rings.push(Ring::Available);
    let (id, held, at_turn) = (id.to_owned(), wanted.held, wanted.at_turn);
    Ok(Ok(Branch { id, job: job.id, content, at_turn, held }))
}

/// Copies the turns, and moves the new job behind them.
async fn take_over(
    session: &mut Session,
    unit: &mut Unit,
    seq: i64,
    wanted: &Wanted<'_>,
    ids: &dyn Ids,
) -> Result<(), StoreError> {
    let Some(into) = past(unit, seq) else { return Ok(()) };
    let copied = copy::copy(session, &wanted.segments, into, ids).await?;
    // What branches were merged from may have cost more together than one of them may.
    let spent = unit.budget_of(seq).limit.map_or(copied.tokens, |limit| copied.tokens.min(limit));
    unit.move_budget(seq, spent, 0);
    unit.took_over(seq, wanted.at_turn - 1, copied.messages);
    let model_used = unit.job(wanted.like).and_then(|job| job.position.as_ref()?.model_used.clone());
    let worked_out =
        Position { turn: wanted.at_turn, tool_turns: copied.tool_turns, model_used, ..Position::default() };
    let job = unit.change_job(seq)?;
    job.tokens_used = spent;
    job.position = Some(wanted.position.clone().unwrap_or(worked_out));
    Ok(())
}

/// The new job, as it would be enqueued, and the digest of what it begins with.
pub(in super::super) async fn like(
    session: &mut Session,
    unit: &Unit,
    wanted: &Wanted<'_>,
) -> Result<(NewJob, String), StoreError> {
    let missing = |column| StoreError::Inconsistent {
        table: "jobs",
        column,
        row: wanted.like.to_string(),
        message: "the row that it points to is missing".to_owned(),
    };
    let keys = vec![wanted.like];
    let mut sent =
        read_by(session, "read envelopes", &sql::SELECT_ENVELOPES_BY_JOB, keys, rows::envelope).await?;
    let (_, retry, mut envelope) = sent.pop().ok_or_else(|| missing("seq"))?;
    let job = unit.job(wanted.like).ok_or_else(|| missing("seq"))?;
    let mut content = BTreeMap::from([("type", job.job_type.clone()), ("args", digest_of(&envelope)?)]);
    let engagement = match unit.engagement_of(wanted.like) {
        Some(row) => {
            let values = [row.digest.as_str().into()];
            let text = &sql::SELECT_DEFINITION_BY_DIGEST;
            let mut found: Vec<AgentDefinition> =
                read(session, "read an agent definition", text, &values, |row| rows::json(row, "definition"))
                    .await?;
            content.insert("agent", row.digest.clone());
            let agent = found.pop().ok_or_else(|| missing("engagement_seq"))?;
            let user = row.engagement.user.clone();
            Some(NewEngagement { id: wanted.engagement.clone(), agent, user, depth: 0 })
        }
        None => None,
    };
    let content = serde_json::json!({"job": content, "turns": wanted.contents});
    if let Some(by) = wanted.by.filter(|_| engagement.is_some()) {
        envelope.meta.insert(SUBMITTED_BY, by);
    }
    let new = NewJob {
        id: wanted.job.clone(),
        job_type: job.job_type.clone(),
        queue: job.queue.clone(),
        priority: job.priority,
        run_at: wanted.at,
        expires_at: job.expires_at.filter(|at| *at > wanted.at),
        timeout_ms: job.timeout_ms,
        retry,
        envelope,
        engagement,
        terms: Terms {
            tenant: job.tenant.clone(),
            visibility_ms: job.visibility_ms,
            // It uses what the other one uses, so it waits for the same limit. It is like the other one on purpose, so
            // it need not be unique.
            rate_limit: job.limit_key.as_deref().map(|stored| RateLimit {
                key: Some(limit_name::parted(stored).1.to_owned()),
                ..RateLimit::default()
            }),
            runtime_tags: job.runtime_tags.clone(),
            ..Terms::default()
        },
        created_at: wanted.at,
    };
    Ok((new, digest::of_json(&content)))
}

fn digest_of(envelope: &turnstone_domain::job::Envelope) -> Result<String, StoreError> {
    Ok(digest::of_text(&crate::engine::statement::as_json(&envelope.args)?))
}
