//! `GET /ojs/manifest`: what this server speaks (OJS HTTP binding §4.1).

use crate::api::Shared;
use crate::reply;
use axum::extract::State;
use axum::response::Response;
use serde_json::json;
use turnstone_ojs::SPEC_VERSION;

pub(crate) async fn manifest(State(app): State<Shared>) -> Response {
    reply::ok(&json!({
        "specversion": SPEC_VERSION,
        "ojs_version": SPEC_VERSION,
        "implementation": {"name": "turnstone", "version": env!("CARGO_PKG_VERSION"), "language": "rust"},
        "conformance_level": 0,
        "conformance_tier": "partial",
        "protocols": ["http"],
        "backend": app.api.backend,
        "unique_job_strength": "none",
        "capabilities": {
            "priorities": true,
            "delayed_jobs": true,
            "job_ttl": true,
            "retries": true,
            "event_stream": true,
            "batch_enqueue": false,
            "cron": false,
            "dead_letter": false,
            "unique_jobs": false,
            "workflows": false,
            "external_workers": false,
        },
        "extensions": {
            "official": [],
            "experimental": [{"name": "ai-agents", "uri": "urn:ojs:ext:ai-agents", "version": "1.0.0-rc.1"}],
        },
    }))
}
