//! Control of agents: pause, resume, fork, merge, tool-retry (facts: the agent cases are the only definition). Each
//! also has an endpoint at the path that OJS's SDKs use, `/v1/agent/jobs/{id}/…`.

mod fork;
mod merge;
mod pause;
mod request_fields;
mod resume;
pub(crate) mod routes;
mod tool_retry;
