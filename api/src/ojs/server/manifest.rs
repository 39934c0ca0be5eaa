//! `GET /ojs/manifest`: the supported parts of OJS (OJS HTTP binding §4.1).

use crate::api::Shared;
use crate::reply;
use axum::extract::State;
use axum::response::Response;
use serde::Serialize;
use std::collections::BTreeMap;
use turnstone_ojs::SPEC_VERSION;
use utoipa::ToSchema;

/// The capabilities of the server, by the names of the conformance levels. A capability that is missing here is not
/// supported.
const CAPABILITIES: [&str; 20] = [
    "backpressure",
    "batch_enqueue",
    "bulk_operations",
    "cron",
    "dead_letter",
    "delayed_jobs",
    "event_stream",
    "external_workers",
    "fair_scheduling",
    "job_ttl",
    "multi_tenancy",
    "priorities",
    "progress",
    "queue_pause",
    "rate_limiting",
    "retries",
    "schema_validation",
    "unique_jobs",
    "webhooks",
    "workflows",
];

/// The version of the texts that the extensions follow.
const RELEASE: &str = "1.0.0-rc.1";

/// Extensions that Open Job Spec publishes.
const OFFICIAL: [&str; 18] = [
    "admin-api",
    "backpressure",
    "dead-letter",
    "durable-execution",
    "encryption",
    "events",
    "fair-scheduling",
    "graceful-shutdown",
    "job-versioning",
    "middleware",
    "multi-tenancy",
    "observability",
    "progress",
    "rate-limiting",
    "schema-registry",
    "serverless",
    "unique-jobs",
    "webhooks",
];

/// Extensions whose specifications are not settled, and those that only carry their members.
const EXPERIMENTAL: [&str; 6] =
    ["agent-control", "ai-agents", "attest", "federation", "ml-resources", "runtime"];

/// The supported parts of OJS.
#[derive(Serialize, ToSchema)]
pub(crate) struct Manifest {
    #[schema(example = "1.0")]
    specversion: &'static str,
    #[schema(example = "1.0")]
    ojs_version: &'static str,
    implementation: Implementation,
    conformance_level: u8,
    conformance_tier: &'static str,
    protocols: [&'static str; 1],
    /// sqlite or postgres.
    #[schema(example = "sqlite")]
    backend: String,
    unique_job_strength: &'static str,
    /// The capabilities, by name.
    capabilities: BTreeMap<&'static str, bool>,
    extensions: Extensions,
}

/// The implementation.
#[derive(Serialize, ToSchema)]
pub(crate) struct Implementation {
    #[schema(example = "turnstone")]
    name: &'static str,
    version: &'static str,
    language: &'static str,
}

/// Extensions by how settled their texts are.
#[derive(Serialize, ToSchema)]
pub(crate) struct Extensions {
    official: Vec<Extension>,
    experimental: Vec<Extension>,
}

/// An extension.
#[derive(Serialize, ToSchema)]
pub(crate) struct Extension {
    #[schema(example = "ai-agents")]
    name: &'static str,
    #[schema(example = "urn:ojs:ext:ai-agents")]
    uri: String,
    version: &'static str,
}

/// The supported parts of OJS.
#[utoipa::path(
    get, path = "/ojs/manifest", tag = "server",
    security(()),
    responses((status = 200, description = "The manifest.", body = Manifest)),
)]
pub(crate) async fn manifest(State(app): State<Shared>) -> Response {
    let extension =
        |name: &&'static str| Extension { name, uri: format!("urn:ojs:ext:{name}"), version: RELEASE };
    let manifest = Manifest {
        specversion: SPEC_VERSION,
        ojs_version: SPEC_VERSION,
        implementation: Implementation {
            name: "turnstone",
            version: env!("CARGO_PKG_VERSION"),
            language: "rust",
        },
        conformance_level: 4,
        conformance_tier: "full",
        protocols: ["http"],
        backend: app.api.backend.clone(),
        unique_job_strength: "strong",
        capabilities: CAPABILITIES.iter().map(|name| (*name, true)).collect(),
        extensions: Extensions {
            official: OFFICIAL.iter().map(extension).collect(),
            experimental: EXPERIMENTAL.iter().map(extension).collect(),
        },
    };
    reply::ok(&manifest)
}
