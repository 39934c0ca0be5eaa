//! An engagement is paused, resumed, forked, merged, or one of its calls made again: the writes.

use super::super::session::Session;
use super::super::unit::Unit;
use crate::StoreError;
use turnstone_domain::Ids;

/// What is asked.
pub(in super::super) enum Request {}

/// What became of it.
pub(in super::super) enum Answer {}

/// Does what is asked.
pub(in super::super) async fn apply<S: Session>(
    _session: &mut S,
    _unit: &mut Unit,
    request: &Request,
    _ids: &dyn Ids,
) -> Result<Answer, StoreError> {
    match *request {}
}
