//! A push under an idempotency key: the key is taken first, so that a concurrent push under it waits for this one's commit.

use crate::engine::rows::{Fields, Inconsistency, KeyAnswer, KeyPush, get, json};
use crate::engine::session::{Args, Session};
use crate::engine::statement::{as_json, execute, read, read_by};
use crate::engine::unit::Unit;
use crate::idempotency::{IdempotentPush, RecordedPush};
use crate::{Pushed, StoreError, sql};
use turnstone_domain::{JobId, JobState};

/// Records the answer to a push; returns the one that is recorded.
pub(in crate::engine) async fn keep(
    session: &mut Session,
    name: &str,
    request: &str,
    answer: &str,
) -> Result<String, StoreError> {
    let row = KeyAnswer { name: name.to_owned(), request: request.to_owned(), answer: answer.to_owned() };
    let (action, text) = ("record an answer", &sql::UPDATE_IDEMPOTENCY_ANSWER);
    let recorded = read_by(session, action, text, vec![row], |row| get::<String>(row, "answer"));
    // The key may have expired meanwhile.
    Ok(recorded.await?.pop().unwrap_or_else(|| answer.to_owned()))
}

/// Pushes once per key. A push that is refused leaves nothing.
pub(in crate::engine) async fn once(
    session: &mut Session,
    unit: &mut Unit,
    push: &IdempotentPush,
) -> Result<Result<RecordedPush, StoreError>, StoreError> {
    let IdempotentPush { name, request, now, expires_at, jobs, answer } = push;
    let values = [name.as_str().into(), request.as_str().into(), now.0.into(), expires_at.0.into()];
    let (action, text) = ("take an idempotency key", &sql::INSERT_IDEMPOTENCY_KEY);
    if session.rows(action, text, Args::Values(&values)).await?.is_empty() {
        let values = [name.as_str().into(), now.0.into()];
        let (action, text) = ("look up an idempotency key", &sql::SELECT_IDEMPOTENCY_KEY);
        let found = read(session, action, text, &values, record).await?.pop();
        let gone = || StoreError::Unavailable { action, message: "the key has just expired".to_owned() };
        return found.map(Ok).ok_or_else(gone);
    }
    match super::apply(session, unit, &[jobs.as_slice()], None)
        .await?
        .pop()
        .unwrap_or(Err(StoreError::Closed))
    {
        Ok(pushed) => {
            let answer = answer(&pushed);
            let reported: Vec<_> =
                pushed.iter().map(|job| (&job.id.0, job.state, job.deduplicated)).collect();
            let row = KeyPush { name: name.clone(), pushed: as_json(&reported)?, answer: answer.clone() };
            execute(session, "record a push", &sql::UPDATE_IDEMPOTENCY_KEY, vec![row], &[]).await?;
            let request = request.clone();
            Ok(Ok(RecordedPush { request, pushed, answer, repeated: false }))
        }
        Err(refused) => {
            let (action, text) = ("give an idempotency key back", &sql::DELETE_IDEMPOTENCY_KEY);
            session.execute(action, text, Args::Values(&[name.as_str().into()])).await?;
            Ok(Err(refused))
        }
    }
}

/// Reads a record.
pub(in crate::engine) fn record(row: &impl Fields) -> Result<RecordedPush, Inconsistency> {
    let pushed = json::<Vec<(JobId, JobState, bool)>>(row, "pushed")?.into_iter();
    let pushed = pushed.map(|(id, state, deduplicated)| Pushed { id, state, deduplicated, pressure: None });
    Ok(RecordedPush {
        request: get(row, "request")?,
        pushed: pushed.collect(),
        answer: get(row, "answer")?,
        repeated: true,
    })
}
