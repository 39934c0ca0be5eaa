//! Open reviews that cannot be read. No list shows them, so no answer would ever end the wait of their jobs.

use super::hold_with_job;
use crate::engine::rows::{self, get};
use crate::engine::session::{Arg, Row, Session, limit as row_limit};
use crate::engine::statement::read;
use crate::engine::unit::Unit;
use crate::{StoreError, sql};
use turnstone_domain::review::{Review, ReviewState};
use turnstone_domain::{ReviewId, Timestamp};

/// The time for which a page of reviews is looked at, in milliseconds. The next page follows.
const PAGE_MS: i64 = 60_000;

/// Looks at one page of the open reviews, which the time chooses. A review that cannot be read is closed; a worker receives
/// its job, which becomes a dead letter. Returns the number of these reviews.
pub(in crate::engine) async fn set_aside(
    session: &mut Session,
    unit: &mut Unit,
    now: Timestamp,
    limit: usize,
) -> Result<usize, StoreError> {
    let count = |row: &Row| get::<i64>(row, "reviews");
    let open = read(session, "count reviews", &sql::SELECT_OPEN_REVIEW_COUNT, &[], count).await?.pop();
    let open = usize::try_from(open.unwrap_or_default()).unwrap_or_default();
    let pages = i64::try_from(open.div_ceil(limit.max(1))).unwrap_or(i64::MAX);
    if pages == 0 {
        return Ok(0);
    }
    let page = usize::try_from(now.0.div_euclid(PAGE_MS).rem_euclid(pages)).unwrap_or_default();
    let none = || Arg::Text(None);
    let values = [
        ReviewState::Open.as_str().into(),
        none(),
        none(),
        row_limit(limit).into(),
        row_limit(page.saturating_mul(limit)).into(),
        none(),
        none(),
        none(),
    ];
    let found = read(session, "look at open reviews", &sql::SELECT_REVIEWS, &values, |row| {
        Ok(rows::decode::<Review>(row).is_err().then_some(ReviewId(get(row, "id")?)))
    });
    let mut set_aside = 0;
    for id in found.await?.into_iter().flatten() {
        let mut own = Unit::default();
        let held = hold_with_job(session, &mut own, &id, now).await?;
        set_aside += usize::from(matches!(held, Some((_, Err(_)))));
        unit.absorb(own);
    }
    Ok(set_aside)
}
