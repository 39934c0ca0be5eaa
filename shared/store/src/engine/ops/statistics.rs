//! Ended jobs are counted per hour, each once: the mark moves in the transaction that counts.

use super::super::rows;
use super::super::session::{Args, Row, Session};
use super::super::statement::read;
use crate::{StoreError, sql};
use turnstone_domain::Timestamp;

/// The most time that one step counts, in milliseconds: the bound of a step.
const WINDOW_MS: i64 = 600_000;

/// Counts the next window of jobs that ended before `until`. Returns `more` while there is more to count, else 0.
pub(in super::super) async fn fold(
    session: &mut Session,
    until: Timestamp,
    more: usize,
) -> Result<usize, StoreError> {
    let decode = |row: &Row| {
        Ok((rows::get::<i64>(row, "ended_at")?, rows::get::<Option<i64>>(row, "first_ended_at")?))
    };
    let found =
        read(session, "read how far statistics are", &sql::SELECT_STATISTICS_MARK, &[], decode).await?;
    let Some((mark, first)) = found.into_iter().next() else { return Ok(0) };
    // Nothing ended between the mark and the first job: that time is counted already.
    let from = first.map_or(until.0, |first| first.max(mark));
    let to = until.0.min(from.saturating_add(WINDOW_MS));
    if to <= mark {
        return Ok(0);
    }
    let values = [mark.into(), to.into()];
    session.execute("count ended jobs", &sql::INSERT_STATISTICS, Args::Values(&values)).await?;
    let values = [to.into()];
    session
        .execute("move the mark of statistics", &sql::UPDATE_STATISTICS_MARK, Args::Values(&values))
        .await?;
    Ok(if to < until.0 { more } else { 0 })
}
