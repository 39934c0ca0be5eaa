//! The check of values against schemas.

use serde_json::Value;
use turnstone_blocking::in_place;
use turnstone_domain::schema::{Schema, bytes_of};

/// Checks a value, in a place that may block if it takes long.
///
/// # Errors
/// As [`Schema::check`].
pub fn check(schema: &Schema, value: &Value) -> Result<(), String> {
    if schema.is_light(bytes_of(value)) { schema.check(value) } else { in_place(|| schema.check(value)) }
}
