//! The log of a store that fails: one line a minute for each thing that cannot be done, however many requests meet it.

/// Logs that something of the store failed, unless the same was logged within the last minute.
macro_rules! store_failed {
    ($level:ident, $error:expr, $what:literal) => {{
        static FACT: turnstone_telemetry::Seldom = turnstone_telemetry::Seldom::new();
        if let Some(left_out) = FACT.due() {
            let error = turnstone_telemetry::redact(&$error.to_string());
            tracing::$level!(left_out, error, $what);
        }
    }};
}
pub(crate) use store_failed;
