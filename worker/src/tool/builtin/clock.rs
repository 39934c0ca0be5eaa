//! `clock`: the current time.

use crate::tool::{Invocation, Tool, ToolError};
use async_trait::async_trait;
use serde_json::{Value, json};
use std::fmt;
use std::sync::Arc;
use turnstone_domain::Clock;
use turnstone_domain::agent::ToolSpec;

/// The tool for the current time in UTC.
pub struct ClockTool {
    spec: ToolSpec,
    clock: Arc<dyn Clock>,
}

impl ClockTool {
    /// Returns a clock tool over `clock`.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        let spec = ToolSpec {
            name: "clock".to_owned(),
            description: "Tells the current date and time in UTC.".to_owned(),
            input_schema: json!({"type": "object", "properties": {}, "additionalProperties": false}),
            idempotent: true,
        };
        Self { spec, clock }
    }
}

#[async_trait]
impl Tool for ClockTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn is_read_only(&self) -> bool {
        true
    }

    async fn call(&self, _: Invocation<'_>) -> Result<Value, ToolError> {
        let now = self.clock.now();
        Ok(json!({"now": now.to_rfc3339(), "epoch_ms": now.0}))
    }
}

impl fmt::Debug for ClockTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClockTool")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use turnstone_domain::Timestamp;

    struct At(i64);

    impl Clock for At {
        fn now(&self) -> Timestamp {
            Timestamp(self.0)
        }
    }

    #[tokio::test]
    async fn it_returns_the_time_of_its_clock() {
        let tool = ClockTool::new(Arc::new(At(1_000)));
        let call = Invocation {
            call_id: &"c".into(),
            input: &json!({}),
            timeout: tool.timeout(),
            identity: &crate::tool::Identity::default(),
        };
        assert_eq!(tool.call(call).await, Ok(json!({"now": "1970-01-01T00:00:01.000Z", "epoch_ms": 1000})));
    }
}
