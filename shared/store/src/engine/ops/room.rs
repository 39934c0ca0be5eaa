//! The number of things that a tenant may have.

use super::super::rows;
use super::super::session::Session;
use super::super::statement::read;
use crate::StoreError;
use crate::sql::Text;

/// Checks that a tenant has fewer than `most`. Requests at the same moment may pass together.
///
/// # Errors
/// [`StoreError::TooMany`], which ends the transaction.
pub(super) async fn has_room(
    session: &mut Session,
    what: &'static str,
    (count, tenant): (&Text, Option<&str>),
    most: u32,
) -> Result<(), StoreError> {
    let rows =
        read(session, "count", count, &[tenant.into()], |row| rows::get::<i64>(row, "entries")).await?;
    let has = rows.first().copied().unwrap_or_default();
    if has < i64::from(most) { Ok(()) } else { Err(StoreError::TooMany { what, most }) }
}
