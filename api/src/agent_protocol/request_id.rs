//! The names that clients give their requests.

use serde_json::{Value, json};

/// What such a request is called among all names: the same one is always one job (AP-A5).
pub(super) fn of_name(agent: &str, tenant: Option<&str>, name: &str) -> Value {
    json!(["agent protocol", agent, tenant, name])
}
