//! A branch: a new job, with an engagement of its own, that takes over turns of others.

use super::super::past::{self, Segment, Twin};
use super::Done;
use super::hold;
use crate::control::{Branch, Refusal};
use crate::engine::rows::{self, BranchRow};
use crate::engine::session::Session;
use crate::engine::statement::{Writes, as_json, read};
use crate::engine::unit::Unit;
use crate::{Ring, StoreError, sql};
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use turnstone_domain::message::Message;
use turnstone_domain::{CallId, Ids, JobId, digest};

/// A branch that is to be made.
pub(super) struct Wanted<'a> {
    /// Its job.
    pub twin: Twin<'a>,
    /// The job that all branches come from.
    pub root: i64,
    /// The name of the branch.
    pub name: Option<&'a str>,
    /// The first turn of the other job that it does not read.
    pub until: i64,
    /// The turns that are copied behind those that it reads.
    pub behind: Option<Segment>,
    /// The digests of the turns that it takes over, by turn.
    pub contents: Vec<String>,
    /// True when its job is paused.
    pub held: bool,
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

/// Makes a branch, in this transaction.
pub(super) async fn make(
    session: &mut Session,
    unit: &mut Unit,
    wanted: Wanted<'_>,
    ids: &dyn Ids,
) -> Done<Branch> {
    let Wanted { twin, root, until, held, .. } = wanted;
    if let Some(name) = wanted.name
        && named(session, root, name).await?.is_some()
    {
        return Ok(Err(Refusal::NameTaken(name.to_owned())));
    }
    let job = twin.job(session, unit).await?;
    let mut begins = BTreeMap::from([
        ("type", job.job_type.clone()),
        ("args", digest::of_text(&as_json(&job.envelope.args)?)),
    ]);
    if let Some(row) = unit.engagement_of(twin.like) {
        begins.insert("agent", row.digest.clone());
    }
    let content = digest::of_json(&json!({"job": begins, "turns": wanted.contents}));
    let (seq, mut sums) = twin.share(session, unit, &job, until).await?;
    if held {
        hold(session, unit, seq, true).await?;
    }
    let mut at_turn = until;
    if let Some(segment) = wanted.behind {
        past::append(session, segment, (seq, until), &mut sums, ids).await?;
        at_turn += segment.until - segment.from;
    }
    let mut id = job.id.to_string();
    if job.engagement.is_some() {
        id = twin.engagement.to_string();
        let spent = sums.tokens;
        unit.move_budget(seq, spent, 0);
        unit.took_over(seq, at_turn - 1, sums.messages, past::last_complete(at_turn - 1));
        let position = twin.position(session, unit, at_turn).await?;
        let job = unit.change_job(seq)?;
        job.tokens_used = spent;
        job.position = Some(position);
    }
    let mut writes = Writes::default();
    let row = BranchRow {
        job_seq: seq,
        id: id.clone(),
        name: wanted.name.map(str::to_owned),
        root_seq: root,
        parent_seq: twin.like,
        at_turn,
        created_at: twin.at,
    };
    writes.insert("remember a branch", vec![row]);
    writes.run(session).await?;
    unit.rings.push(Ring::Available);
    Ok(Ok(Branch { id, job: job.id, content, at_turn, held }))
}

/// Returns the content of each turn of an engagement: a digest without ids and times, so that equal turns of two branches
/// are equal. Empty for a plain job.
pub(super) async fn contents(
    session: &mut Session,
    seq: i64,
    until: i64,
) -> Result<BTreeMap<i64, String>, StoreError> {
    let (mut after, mut turns) = (0, BTreeMap::new());
    let mut calls: HashMap<CallId, usize> = HashMap::new();
    loop {
        let page = past::messages(session, seq, (0, until), after).await?;
        let Some(last) = page.last() else { return Ok(turns) };
        after = last.seq;
        for stored in page {
            let said = canonical(&stored.message, &mut calls);
            let turn: &mut String = turns.entry(stored.turn).or_default();
            *turn = digest::of_text(&format!("{turn}{}", digest::of_json(&said)));
        }
    }
}

/// A message without ids: calls are numbered in the order in which they were asked for.
fn canonical(message: &Message, calls: &mut HashMap<CallId, usize>) -> Value {
    let mut number = |id: &CallId| {
        let next = calls.len();
        *calls.entry(id.clone()).or_insert(next)
    };
    let requested: Vec<Value> = message
        .tool_calls
        .iter()
        .map(|call| json!({"call": number(&call.call_id), "name": call.name, "arguments": call.arguments}))
        .collect();
    let answers = message.call_id.as_ref().map(number);
    let mut said =
        json!({"role": message.role, "content": message.content, "tool_calls": requested, "call": answers});
    if !message.parts.is_empty() {
        said["parts"] = json!(message.parts);
    }
    said
}
