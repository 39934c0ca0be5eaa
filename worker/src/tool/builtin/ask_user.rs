//! `ask_user`: the agent asks the user of its engagement. EXEC parks the job and takes the answer as the
//! call's outcome, so the tool itself never runs.

use crate::tool::{Invocation, Tool, ToolError};
use async_trait::async_trait;
use serde_json::Value;
use std::time::Duration;
use turnstone_domain::agent::ToolSpec;
use turnstone_domain::question::Question;

/// Asks the user of the engagement.
#[derive(Debug)]
pub struct AskUserTool {
    spec: ToolSpec,
}

impl AskUserTool {
    /// Returns the tool under one of its names.
    #[must_use]
    pub fn new(name: &str) -> Self {
        let description = "Asks the user and waits for the answer. Give either one `question`, or `request_keys`: a key for each \
                           answer with what is asked.";
        let spec = ToolSpec {
            name: name.to_owned(),
            description: description.to_owned(),
            input_schema: Question::schema(),
            idempotent: true,
        };
        Self { spec }
    }
}

#[async_trait]
impl Tool for AskUserTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn timeout(&self) -> Duration {
        Duration::from_secs(1)
    }

    fn asks_user(&self) -> bool {
        true
    }

    async fn call(&self, _: Invocation<'_>) -> Result<Value, ToolError> {
        Err(ToolError::Refused(
            "the user can be asked only by the agent itself, in a call of its own".to_owned(),
        ))
    }
}
