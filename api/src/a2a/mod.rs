//! A2A 1.0: every registered agent, in any format, over JSON-RPC and server-sent events.
//!
//! A task is a job, and its context is the engagement. A message is an input into that engagement; the agent's answer
//! is the task's artifact.

mod call;
mod card;
mod directory;
mod list;
mod message;
mod method;
pub(crate) mod routes;
mod rpc;
mod send;
mod task;
mod watch;

use crate::api::App;
use crate::reply::Failure;
use crate::request::Tenant;
use turnstone_ojs::OjsError;
use turnstone_store::AgentRecord;

async fn agent_named(app: &App, name: &str, tenant: &Tenant) -> Result<AgentRecord, Failure> {
    let found = app.api.store.views.agent(name, tenant.name()).await?;
    found.ok_or_else(|| OjsError::not_found("agent", name).into())
}
