//! Import: an engagement that has ended elsewhere, with its ids and everything that is on record of it.

use super::super::rows::{self, NewScope, ScopeVersion, StateKey};
use super::super::session::{Args, Session};
use super::super::statement::{Writes, as_json, read, read_by};
use super::super::unit::Unit;
use super::past::{self, Turns};
use super::push;
use crate::ImportRefusal;
use crate::{StoreError, sql};
use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};
use turnstone_domain::agent::Admission;
use turnstone_domain::feed::IMPORTED;
use turnstone_domain::record::{EngagementRecord, NewIds, add_new_id};
use turnstone_domain::review::{NewReview, ReviewState};
use turnstone_domain::session_state::Scope;
use turnstone_domain::tool_call::ToolCall;
use turnstone_domain::{
    AgentDefinition, CallId, EngagementId, EventName, Ids, NewEvent, ReviewId, Terms, Timestamp,
};

pub(in super::super) async fn apply(
    session: &mut Session,
    unit: &mut Unit,
    (record, admitted): (&EngagementRecord, Option<Admission>),
    at: Timestamp,
    ids: &dyn Ids,
) -> Result<Result<EngagementId, ImportRefusal>, StoreError> {
    if let Some(known) = known(session, unit, record).await? {
        return Ok(Err(ImportRefusal::Known(known)));
    }
    let mut own = unique(session, record, ids).await?;
    // Another tenant has an engagement with this id, of which the importing one learns nothing.
    if engagement(session, &own, None).await?
        && let Some(new) = &mut own.to_mut().job.engagement
    {
        new.id = EngagementId(ids.next());
    }
    let record = &*own;
    let mut job = record.job.clone();
    if let Some(new) = &mut job.engagement {
        new.agent = AgentDefinition { imported: true, admitted, ..new.agent.portable() };
    }
    let Terms { tenant, parent_results, tags, .. } = job.terms;
    job.terms = Terms { tenant, parent_results, tags, ..Terms::default() };
    let seq = push::one(session, unit, &job).await?;
    taken_over(record).write(session, seq).await?;
    let turns = record.checkpoints.iter().filter(|done| done.phase.next().is_none()).map(|done| done.turn);
    let messages = i64::try_from(record.messages.len()).unwrap_or(i64::MAX);
    let last = record.checkpoints.iter().map(|done| (done.turn, done.phase)).max();
    unit.took_over(seq, turns.max().unwrap_or(0), messages, last);
    let values = [seq.into(), at.0.into()];
    session.execute("note an import", &sql::UPDATE_IMPORTED_ENGAGEMENT, Args::Values(&values)).await?;
    end(unit, seq, record, admitted)?;
    reviews(unit, seq, record)?;
    for artifact in &record.artifacts {
        let made = [(artifact.turn, artifact.file.clone())];
        super::artifacts::put(unit, seq, &made, artifact.created_at);
    }
    state(session, unit, seq, record, at).await?;
    for event in &record.events {
        // Those of the enqueueing are there.
        if !matches!(event.name, EventName::JobEnqueued | EventName::JobScheduled) {
            // Subscribers are not notified: the event happened on another server, and the import writes an event of
            // its own.
            let (name, turn, mut data) = (event.name, event.turn, event.data.clone());
            if let Some(data) = data.as_object_mut() {
                data.insert(IMPORTED.to_owned(), true.into());
            }
            unit.event(seq, &NewEvent { name, turn, data: data.into(), at: event.at })?;
        }
    }
    unit.flush(session).await?;
    decide(session, record).await?;
    // The job has ended, so these reviews can no longer be answered, whatever the document says.
    super::reviews::close(session, seq, record.end.ended_at.unwrap_or(at)).await?;
    Ok(Ok(record.engagement_id()))
}

/// Returns the part of the record that its tenant has here, if any.
async fn known(
    session: &mut Session,
    unit: &mut Unit,
    record: &EngagementRecord,
) -> Result<Option<String>, StoreError> {
    let tenant = record.job.terms.tenant.as_deref();
    if engagement(session, record, tenant).await? {
        return Ok(Some(format!("engagement {}", record.engagement_id())));
    }
    let found = unit.read_job(session, &record.job.id.shown().into(), tenant).await?;
    Ok(found.map(|_| format!("job {}", record.job.id)))
}

/// Returns true if a tenant has the engagement of the record; `None` means any tenant.
async fn engagement(
    session: &mut Session,
    record: &EngagementRecord,
    tenant: Option<&str>,
) -> Result<bool, StoreError> {
    let id = record.engagement_id();
    let values = [id.as_str().into(), tenant.into()];
    let (action, text) = ("look for an engagement", &sql::SELECT_ENGAGEMENT_BY_ID);
    let found = read(session, action, text, &values, |row| rows::get::<i64>(row, "seq")).await?;
    Ok(!found.is_empty())
}

/// Returns the turns of a record, without the cost of those that it shares: the engagement that it comes from paid for
/// them. The budget of a branch counts their tokens.
fn taken_over(record: &EngagementRecord) -> Turns {
    let (until, is_fork) = (record.shared_until(), record.forked_at().is_some());
    let done = record.checkpoints.iter().cloned().map(|done| match (done.turn < until, is_fork) {
        (true, true) => past::unpaid(done),
        (true, false) => past::costless(done),
        (false, _) => done,
    });
    Turns { messages: record.messages.clone(), calls: record.calls.clone(), checkpoints: done.collect() }
}

/// Returns the record with new ids where others here have, or may get, the same ones. These are calls that it
/// shares with the engagement that it was forked from, and the decisions about them.
async fn unique<'r>(
    session: &mut Session,
    record: &'r EngagementRecord,
    ids: &dyn Ids,
) -> Result<Cow<'r, EngagementRecord>, StoreError> {
    let keys = record.calls.iter().map(|call| call.call_id.0.clone()).collect();
    let text = &sql::SELECT_KNOWN_TOOL_CALLS;
    let known = read_by(session, "look for calls", text, keys, |row| rows::get::<CallId>(row, "call_id"));
    let known = known.await?;
    let mut new = NewIds::new();
    known.iter().chain(record.shared_calls()).for_each(|id| add_new_id(&mut new, id, ids));
    // Notes stay beside their calls.
    for call in record.calls.iter().filter(|call| call.is_note()) {
        if new.contains_key(ToolCall::parted_id(call.call_id.as_str()).0) {
            add_new_id(&mut new, &call.call_id, ids);
        }
    }
    let (mut seen, mut reviews) = (HashSet::new(), BTreeMap::new());
    for (at, review) in record.reviews.iter().enumerate() {
        let values = [review.id.as_str().into(), None.into()];
        let (action, text) = ("look for a review", &sql::SELECT_REVIEW_BY_ID);
        let found = read(session, action, text, &values, |row| rows::get::<i64>(row, "seq")).await?;
        if !found.is_empty() || !seen.insert(&review.id) {
            reviews.insert(at, ReviewId(ids.next()));
        }
    }
    if new.is_empty() && reviews.is_empty() {
        return Ok(Cow::Borrowed(record));
    }
    let mut record = record.clone().with_calls_renamed(&new);
    for (at, id) in reviews {
        record.reviews[at].id = id;
    }
    Ok(Cow::Owned(record))
}

/// Ends the job as it ended.
fn end(
    unit: &mut Unit,
    seq: i64,
    record: &EngagementRecord,
    admitted: Option<Admission>,
) -> Result<(), StoreError> {
    let end = &record.end;
    unit.move_budget(seq, end.tokens_used, 0);
    let job = unit.change_job(seq)?;
    job.state = end.state;
    job.attempt = end.attempt;
    job.failures = end.failures;
    job.started_at = end.started_at;
    job.ended_at = end.ended_at.or(Some(record.job.created_at));
    let mut position = end.position.clone();
    if admitted != Some(Admission::Signed) {
        // It names another agent, which nothing admits.
        position.handoff_agent = None;
    }
    job.position = Some(position);
    job.tokens_used = end.tokens_used;
    job.moved = true;
    if let Some(result) = &end.result {
        unit.result(seq, result);
    }
    for failed in &end.errors {
        unit.failed_attempt(seq, failed)?;
    }
    Ok(())
}

fn reviews(unit: &mut Unit, seq: i64, record: &EngagementRecord) -> Result<(), StoreError> {
    for review in &record.reviews {
        let new = NewReview {
            id: review.id.clone(),
            turn: review.turn,
            call_id: review.call_id.clone(),
            kind: review.kind,
            reviewer: review.reviewer.clone(),
            question: review.question.clone(),
            arguments_hash: review.arguments_hash.clone(),
            deadline_at: review.deadline_at,
            plan: review.plan.clone(),
            asked: review.asked.clone(),
        };
        unit.review(seq, &new, review.created_at)?;
    }
    Ok(())
}

/// Answers the reviews as they were answered.
async fn decide(session: &mut Session, record: &EngagementRecord) -> Result<(), StoreError> {
    for review in &record.reviews {
        super::reviews::write(session, review).await?;
    }
    for review in record.reviews.iter().filter(|review| review.state != ReviewState::Open) {
        super::reviews::answer(session, review, review.decided_at.unwrap_or(review.created_at)).await?;
        if review.spent {
            let of_review = [review.id.as_str().into()];
            session.execute("mark a review", &sql::UPDATE_SPENT_REVIEW, Args::Values(&of_review)).await?;
        }
    }
    Ok(())
}

/// State that ends with the engagement comes with it. What belongs to a user stays what it is here.
async fn state(
    session: &mut Session,
    unit: &Unit,
    seq: i64,
    record: &EngagementRecord,
    at: Timestamp,
) -> Result<(), StoreError> {
    let Some(row) = unit.engagement_of(seq) else { return Ok(()) };
    let Some(new) = &record.job.engagement else { return Ok(()) };
    let scope = Scope::of(&new.agent, &row.engagement, &record.job.envelope.meta);
    let Some(scope) = scope.filter(|scope| scope.of_engagement && !record.state.is_empty()) else {
        return Ok(());
    };
    let version = record.state.iter().map(|entry| entry.version).max().unwrap_or(1);
    let mut keys = Vec::with_capacity(record.state.len());
    for entry in &record.state {
        keys.push(StateKey {
            scope: scope.name.clone(),
            name: entry.key.clone(),
            content: as_json(&entry.value)?,
            version: entry.version,
            updated_at: entry.updated_at,
            expires_at: entry.expires_at,
        });
    }
    let mut writes = Writes::default();
    writes.insert_missing("open states", vec![NewScope::of(&scope.name, Some(seq), at)]);
    writes.run(session).await?;
    let mut writes = Writes::default();
    writes.all(
        "write states",
        &sql::UPDATE_STATE_SCOPES,
        vec![ScopeVersion { name: scope.name, version, at }],
    );
    writes.insert_over("write keys of states", keys);
    writes.run(session).await
}
