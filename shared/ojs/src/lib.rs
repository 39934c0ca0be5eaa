//! The Open Job Spec on the wire: envelopes in, jobs and errors out.
//!
//! This crate knows nothing about HTTP or the store: it turns bytes into a [`turnstone_domain::NewJob`] and a
//! [`turnstone_domain::Job`] into JSON. Reading a job takes three steps, because the agent that a job names has to be
//! looked up in between:
//!
//! 1. [`EnqueueRequest::from_fields`] checks everything that depends on the body alone;
//! 2. [`EnqueueRequest::agent_name`] returns the name of the registered agent, if any;
//! 3. [`EnqueueRequest::into_new_job`] makes the job.
//!
//! ```text
//!  bytes ─ body ─▶ members ─ envelope, options, agent_fields, tools, tenant, when ─▶ NewJob ─ rules ─▶ the store
//!                     ╰───── cron, workflow, subscription, overrides ─────▶ other requests
//!                     ╰───── request ─────▶ the structs of further requests, such as those of work
//!
//!  the store ─▶ Job, events ─ job, cloud_event, cron, subscription, attest ─▶ JSON
//!
//!  refusals of either: error, with a suggestion of meant
//! ```

pub mod agent_fields;
pub mod attest;
pub mod body;
mod cloud_event;
pub mod cron;
mod envelope;
mod error;
mod fields;
mod job;
mod meant;
mod names;
mod open;
mod options;
mod ossa_event;
mod overrides;
mod read;
pub mod request;
pub mod rules;
mod schema;
mod subscription;
mod tenant;
mod tools;
mod when;
pub mod work;
pub mod workflow;

pub use cloud_event::CloudEvent;
pub use envelope::{Enqueue, EnqueueRequest};
pub use error::{CURSOR_LOST, ErrorBody, ErrorReply, OjsError, QUEUE_FULL, TENANT_LIMIT_EXCEEDED};
pub use fields::Fields;
pub use job::{FailureRecord, JobBody, JobCheckpoint, JobReply, accepted};
pub use meant::{did_you_mean, meant};
pub use names::{check_job_type, check_queue_name, schema_version, schema_version_of};
pub use open::OpenValue;
pub use options::{LimitRequest, read_limit};
pub use ossa_event::{Form, OssaEvent, form, names_matching};
pub use overrides::{RetryRequest, overrides};
pub use schema::{ArgsSchemas, Misfit};
pub use subscription::{
    DeliveryBody, FilterBody, NewSubscription, Rotation, SubscriptionBody, SubscriptionChange,
    SubscriptionReply, read_change, read_new,
};
pub use tenant::check_tenant;

/// The supported version of the specification, as in `specversion` and in the header `OJS-Version`.
pub const SPEC_VERSION: &str = "1.0";

/// The media type of every OJS body (OJS HTTP binding §3).
pub const MEDIA_TYPE: &str = "application/openjobspec+json";

/// Returns true if a client's version is supported: `1`, `1.0` and any `1.0.x`.
#[must_use]
pub fn speaks(version: &str) -> bool {
    version == "1" || version == SPEC_VERSION || version.starts_with("1.0.")
}
