//! A tool that no worker calls: the outcomes of its calls come from the user, the client, or a record.

use super::{Invocation, Tool, ToolError, Transport};
use async_trait::async_trait;
use serde_json::Value;
use std::time::Duration;
use turnstone_domain::agent::ToolSpec;
use turnstone_domain::question::Question;

/// A tool that no worker calls.
#[derive(Debug)]
pub struct Uncalled {
    /// Its description.
    pub spec: ToolSpec,
    /// The longest a call may take.
    pub timeout: Duration,
    /// The transport of its calls.
    pub transport: Transport,
    /// True if the user or the client answers its calls.
    pub asks_user: bool,
    /// The refusal of a call.
    pub refusal: &'static str,
}

impl Uncalled {
    /// Returns a tool whose calls the user or the client answers. EXEC parks the job and takes the answer as the call's
    /// outcome.
    pub fn asking(spec: ToolSpec, refusal: &'static str) -> Self {
        let (timeout, transport) = (Duration::from_secs(1), Transport::Function);
        Self { spec, timeout, transport, asks_user: true, refusal }
    }

    /// Returns `ask_user`, by which the agent asks the user of its engagement, under one of its names.
    pub fn ask_user(name: &str) -> Self {
        let description = "Asks the user and waits for the answer. Give either one `question`, or `request_keys`: a key for each \
                           answer with what is asked.";
        let spec = ToolSpec {
            name: name.to_owned(),
            description: description.to_owned(),
            input_schema: Question::schema(),
            idempotent: true,
        };
        Self::asking(spec, "the user can be asked only by the agent itself, in a call of its own")
    }
}

#[async_trait]
impl Tool for Uncalled {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn timeout(&self) -> Duration {
        self.timeout
    }

    fn transport(&self) -> Transport {
        self.transport
    }

    fn asks_user(&self) -> bool {
        self.asks_user
    }

    async fn call(&self, _: Invocation<'_>) -> Result<Value, ToolError> {
        Err(ToolError::Refused(self.refusal.to_owned()))
    }
}
