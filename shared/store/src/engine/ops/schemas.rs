//! The writes of schemas for the arguments of job types.

use super::super::rows::Stored;
use super::super::session::{Arg, Args, Session};
use super::super::statement::execute;
use crate::{StoreError, sql};
use turnstone_domain::schema::{Mode, RegisteredSchema};

/// Adds a version; returns whether it is new.
pub(in super::super) async fn register(
    session: &mut Session,
    schema: &RegisteredSchema,
) -> Result<bool, StoreError> {
    let text = &RegisteredSchema::table().inserts.missing;
    Ok(execute(session, "register a schema", text, vec![schema.clone()], &[]).await? > 0)
}

/// Sets the mode of one version, or of all; returns how many versions were written.
pub(in super::super) async fn set_mode(
    session: &mut Session,
    job_type: &str,
    version: Option<i64>,
    mode: Mode,
) -> Result<usize, StoreError> {
    let values = [job_type.into(), Arg::Int(version), mode.as_str().into()];
    let (action, text) = ("set the mode of a schema", &sql::UPDATE_SCHEMA_MODE);
    let written = session.execute(action, text, Args::Values(&values)).await?;
    Ok(usize::try_from(written).unwrap_or(usize::MAX))
}

/// Removes a version; returns whether there was one.
pub(in super::super) async fn remove(
    session: &mut Session,
    job_type: &str,
    version: i64,
) -> Result<bool, StoreError> {
    let values = [job_type.into(), version.into()];
    Ok(session.execute("remove a schema", &sql::DELETE_SCHEMA, Args::Values(&values)).await? > 0)
}
