//! The names that clients give their requests.

use serde_json::{Value, json};

/// Returns the unique name of such a request: the same one always determines the same job (AP-A5).
pub(super) fn of_name(agent: &str, tenant: Option<&str>, name: &str) -> Value {
    json!(["agent protocol", agent, tenant, name])
}
