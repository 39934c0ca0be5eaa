//! An agent's answer to a review: what its engagement ended with (OAS-A9).

use super::decide;
use crate::engine::rows::{self, json};
use crate::engine::session::Session;
use crate::engine::statement::{read, read_by};
use crate::engine::unit::Unit;
use crate::{StoreError, sql};
use turnstone_domain::agent::delegation::DelegationState;
use turnstone_domain::review::{Review, ReviewState, Verdict};
use turnstone_domain::{RawJson, Timestamp};

/// Decides the review that was asked in this engagement, which has ended. Its job is locked, and continues by
/// itself.
pub(in super::super) async fn answered(
    session: &mut Session,
    unit: &mut Unit,
    (engagement_id, job_seq): (&str, i64),
    state: DelegationState,
    at: Timestamp,
) -> Result<(), StoreError> {
    let values = [engagement_id.into()];
    let mut found =
        read(session, "read a review", &sql::SELECT_REVIEW_BY_ASKED, &values, rows::decode::<Review>).await?;
    let Some(review) = found.pop() else { return Ok(()) };
    let Some(seq) = unit.seq_of(&review.job_id) else { return Ok(()) };
    if unit.job(seq).is_none_or(|job| job.state.is_terminal()) {
        return Ok(());
    }
    let (state, reason) = match state {
        DelegationState::Success => {
            let keys = vec![job_seq];
            let results = read_by(session, "read results", &sql::SELECT_RESULTS_BY_JOB, keys, |row| {
                json::<RawJson>(row, "result")
            });
            let answer = results.await?.pop().unwrap_or_else(RawJson::null);
            let Verdict { approve, reason } = Verdict::of(&answer);
            (if approve { ReviewState::Approved } else { ReviewState::Rejected }, reason)
        }
        DelegationState::Timeout => (ReviewState::Expired, None),
        DelegationState::Error | DelegationState::Open => {
            let reason = "it failed, and without a verdict nothing is confirmed".to_owned();
            (ReviewState::Rejected, Some(reason))
        }
    };
    let by = (state != ReviewState::Expired).then(|| review.reviewer.clone());
    let decided = Review { state, decided_by: by, reason, decided_at: Some(at), ..review };
    decide::end(session, unit, seq, &decided).await.map(|_| ())
}
