//! The leader among the schedulers: a lease on one row, and no lock that lives in a connection.

use super::super::rows;
use super::super::session::{Args, Session};
use super::super::statement::read;
use super::upkeep::ADOPTED_MS;
use crate::{StoreError, Term, sql};
use turnstone_domain::{Ids, Timestamp};

/// Takes or renews the leadership; `None` while another leads.
pub(in super::super) async fn lead(
    session: &mut Session,
    holder: &str,
    lease_ms: i64,
    now: Timestamp,
    ids: &dyn Ids,
) -> Result<Option<Term>, StoreError> {
    let fresh = ids.next();
    let expires_at = now.plus_ms(lease_ms);
    let latest = expires_at.plus_ms(ADOPTED_MS);
    let values = [holder.into(), fresh.as_str().into(), expires_at.0.into(), now.0.into(), latest.0.into()];
    let mut tokens = read(session, "take the leadership", &sql::INSERT_LEADER, &values, |row| {
        rows::get::<String>(row, "token")
    })
    .await?;
    Ok(tokens.pop().map(|token| Term { holder: holder.to_owned(), token, expires_at }))
}

/// Ends a term, so that another can begin at once.
pub(in super::super) async fn resign(session: &mut Session, term: &Term) -> Result<(), StoreError> {
    let values = [term.token.as_str().into()];
    session
        .execute("give up the leadership", &sql::UPDATE_RESIGNED_LEADER, Args::Values(&values))
        .await
        .map(|_| ())
}

/// Returns true when this term is the current one. It stays so until the end of the transaction.
pub(in super::super) async fn holds(session: &mut Session, term: &Term) -> Result<bool, StoreError> {
    let values = [term.token.as_str().into()];
    let rows = session.rows("check the leadership", &sql::LOCK_LEADER_TERM, Args::Values(&values)).await?;
    Ok(!rows.is_empty())
}
