//! The ids of requests that clients name themselves.

use serde_json::json;
use turnstone_domain::digest;

/// The id of the job of such a request, in the form of a UUIDv7: the same name always makes the same one, so that a
/// request that is sent twice is one job (AP-A5).
pub(super) fn of_name(agent: &str, tenant: Option<&str>, name: &str) -> String {
    let hex = digest::of_json(&json!(["agent protocol", agent, tenant, name]));
    format!("{}-{}-7{}-8{}-{}", &hex[..8], &hex[8..12], &hex[12..15], &hex[15..18], &hex[18..30])
}
