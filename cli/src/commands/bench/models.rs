//! Models and a tool for measurements only; they are never configured anywhere.

use async_trait::async_trait;
use serde_json::{Value, json};
use std::sync::Mutex;
use std::sync::mpsc;
use std::time::{Duration, Instant};
use tokio::sync::watch;
use turnstone_domain::agent::ToolSpec;
use turnstone_worker::model::{
    AskedCall, FinishReason, Model, ModelAnswer, ModelError, ModelRequest, NoopModel, Usage,
};
use turnstone_worker::tool::{Invocation, Tool, ToolError};

/// Longer than any measurement.
const FOREVER: Duration = Duration::from_secs(500);

fn asking_for_the_tool() -> ModelAnswer {
    ModelAnswer {
        content: None,
        tool_calls: vec![AskedCall { name: Idle::NAME.to_owned(), arguments: json!({}) }],
        finish_reason: FinishReason::ToolUse,
        usage: Some(Usage::of(10, 1)),
        model: "noop".to_owned(),
        response_id: None,
        attached: None,
        parts: 1,
    }
}

/// Calls the tool until the conversation has a number of messages, then takes its time.
pub struct Patient {
    messages: usize,
    reached: watch::Sender<usize>,
}

impl Patient {
    /// With a count of the turns that wait.
    #[must_use]
    pub fn new(messages: usize) -> (Self, watch::Receiver<usize>) {
        let (reached, waiting) = watch::channel(0);
        (Self { messages, reached }, waiting)
    }
}

#[async_trait]
impl Model for Patient {
    async fn answer(&self, request: &ModelRequest) -> Result<ModelAnswer, ModelError> {
        if request.messages.len() < self.messages {
            return Ok(asking_for_the_tool());
        }
        self.reached.send_modify(|reached| *reached += 1);
        NoopModel { delay: FOREVER }.answer(request).await
    }
}

/// Calls the tool again and again, notes the times of its calls, and ends after a number of turns.
pub struct Restless {
    turns: usize,
    calls: Mutex<(usize, mpsc::Sender<Instant>)>,
}

impl Restless {
    /// With the times of its calls.
    #[must_use]
    pub fn new(turns: usize) -> (Self, mpsc::Receiver<Instant>) {
        let (sender, calls) = mpsc::channel();
        (Self { turns, calls: Mutex::new((0, sender)) }, calls)
    }
}

#[async_trait]
impl Model for Restless {
    async fn answer(&self, request: &ModelRequest) -> Result<ModelAnswer, ModelError> {
        let turn = {
            let mut calls = self.calls.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            let _ = calls.1.send(Instant::now());
            calls.0 += 1;
            calls.0
        };
        if turn < self.turns { Ok(asking_for_the_tool()) } else { NoopModel::default().answer(request).await }
    }
}

/// A tool that does nothing.
pub struct Idle {
    spec: ToolSpec,
}

impl Idle {
    /// Its name.
    pub const NAME: &str = "idle";

    /// Returns the tool.
    #[must_use]
    pub fn new() -> Self {
        let spec = ToolSpec {
            name: Self::NAME.to_owned(),
            description: "Does nothing.".to_owned(),
            input_schema: json!({"type": "object"}),
            idempotent: false,
        };
        Self { spec }
    }
}

#[async_trait]
impl Tool for Idle {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn timeout(&self) -> Duration {
        Duration::from_secs(1)
    }

    async fn call(&self, _: Invocation<'_>) -> Result<Value, ToolError> {
        Ok(json!({"done": true}))
    }
}
