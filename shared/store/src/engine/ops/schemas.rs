//! What the arguments of a job type have to look like: the writes.

use super::super::session::{Arg, Args, Session};
use crate::{StoreError, sql};
use turnstone_domain::schema::{Mode, RegisteredSchema};

/// What is asked.
pub(in super::super) enum Request {
    Register(Box<RegisteredSchema>),
    SetMode { job_type: String, version: Option<i64>, mode: Mode },
    Remove { job_type: String, version: i64 },
}

/// How many versions were written.
pub(in super::super) type Answer = usize;

/// Does what is asked.
pub(in super::super) async fn apply<S: Session>(
    session: &mut S,
    request: &Request,
) -> Result<Answer, StoreError> {
    let written = match request {
        Request::Register(schema) => {
            let values = [
                schema.job_type.as_str().into(),
                schema.version.into(),
                schema.mode.as_str().into(),
                schema.body.as_str().into(),
                schema.created_at.0.into(),
            ];
            session.execute("register a schema", &sql::INSERT_SCHEMA, Args::Values(&values)).await?
        }
        Request::SetMode { job_type, version, mode } => {
            let values = [job_type.as_str().into(), Arg::Int(*version), mode.as_str().into()];
            session
                .execute("set the mode of a schema", &sql::UPDATE_SCHEMA_MODE, Args::Values(&values))
                .await?
        }
        Request::Remove { job_type, version } => {
            let values = [job_type.as_str().into(), (*version).into()];
            session.execute("remove a schema", &sql::DELETE_SCHEMA, Args::Values(&values)).await?
        }
    };
    Ok(usize::try_from(written).unwrap_or(usize::MAX))
}
