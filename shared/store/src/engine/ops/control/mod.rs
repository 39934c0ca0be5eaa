//! An engagement is paused, resumed, forked, merged, or one of its calls made again: the writes.

pub(super) mod branch;
pub(super) mod copy;
mod fork;
mod hold;
mod keys;
mod merge;
mod retry_tool;

pub(in super::super) use fork::apply as fork;
pub(in super::super) use hold::{hold, pause, resume};
pub(in super::super) use keys::keep as keep_key;
pub(in super::super) use merge::apply as merge;
pub(in super::super) use retry_tool::apply as retry_tool;

use super::super::rows::JobRow;
use super::super::session::Session;
use super::super::statement::read_by;
use super::super::unit::Unit;
use crate::control::{Refusal, Target};
use crate::{StoreError, sql};

/// The result of an operation, or the reason why it was refused; the outer error is the database's.
type Done<T> = Result<Result<T, Refusal>, StoreError>;

/// Takes in the job of the request; no other process changes it until this is committed.
async fn find(session: &mut Session, unit: &mut Unit, target: &Target) -> Done<i64> {
    let keys = vec![target.job.clone()];
    let mut rows = read_by(session, "read a job", &sql::LOCK_JOBS, keys, JobRow::decode).await?;
    rows.retain(|job| target.tenant.is_none() || job.tenant == target.tenant);
    unit.take_in(session, rows).await?;
    Ok(unit.seq_of(&target.job).ok_or(Refusal::NoJob))
}
