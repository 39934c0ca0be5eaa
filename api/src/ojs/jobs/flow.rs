//! The inputs of a flow, checked before its job is stored.

use crate::api::App;
use crate::reply::Failure;
use serde_json::Value;
use turnstone_blocking::in_place;
use turnstone_domain::NewJob;
use turnstone_ojs::OjsError;

/// Refuses a job for a flow whose inputs are missing, surplus, or cannot be cast.
///
/// # Errors
/// 422 that names the input.
pub(super) fn check(app: &App, job: &NewJob) -> Result<(), Failure> {
    let Some(document) = job.engagement.as_ref().and_then(|new| new.agent.flow.as_ref()) else {
        return Ok(());
    };
    let flow = in_place(|| app.flows.get(document)).map_err(OjsError::internal)?;
    let args: Vec<Value> = job.envelope.args.parse().unwrap_or_default();
    match flow.start_of(args.into_iter().next()) {
        Ok(_) => Ok(()),
        Err(why) => Err(OjsError::validation("args", format!("args[0]: {why}")).into()),
    }
}
