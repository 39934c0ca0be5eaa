//! An engagement is paused, resumed, forked, merged, or one of its calls made again: the writes.

mod branch;
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

use super::super::session::Session;
use super::super::unit::Unit;
use crate::StoreError;
use crate::control::{Refusal, Target};

/// The result of an operation, or the reason why it was refused; the outer error is the database's.
type Done<T> = Result<Result<T, Refusal>, StoreError>;

/// Takes in the job of the request; no other process changes it until this is committed.
async fn find(session: &mut Session, unit: &mut Unit, target: &Target) -> Done<i64> {
    let found = unit.read_job(session, &target.job, target.tenant.as_deref()).await?;
    Ok(found.ok_or(Refusal::NoJob))
}
