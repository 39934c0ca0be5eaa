//! `save_artifact`: the agent makes a file for its caller.

use crate::tool::files;
use crate::tool::{Answer, Invocation, Tool, ToolError};
use async_trait::async_trait;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};
use std::time::Duration;
use turnstone_domain::CallId;
use turnstone_domain::agent::ToolSpec;
use turnstone_domain::artifact::{self, NewArtifact};

/// Its names; the one in OpenAgentSpec has a hyphen.
pub const NAMES: [&str; 2] = ["save_artifact", "save-artifact"];

/// Makes a file from its arguments. EXEC keeps it with the outcome of the call.
#[derive(Debug)]
pub struct SaveArtifactTool {
    spec: ToolSpec,
}

impl SaveArtifactTool {
    /// Returns the tool under one of its names.
    #[must_use]
    pub fn new(name: &str) -> Self {
        let description = "Keeps a file for the user, who can download it. Give its `name`, its `media_type`, and either `content` as \
                           text or `content_base64`.";
        let text = |description: &str| json!({"type": "string", "description": description});
        let input_schema = json!({
            "type": "object",
            "properties": {
                "name": text("The name of the file, such as report.md"),
                "media_type": text("Its media type, such as text/markdown"),
                "content": text("What is in it, as text"),
                "content_base64": text("What is in it, as bytes in base64; instead of content"),
            },
            "required": ["name"],
            "additionalProperties": false,
        });
        let spec = ToolSpec {
            name: name.to_owned(),
            description: description.to_owned(),
            input_schema,
            idempotent: true,
        };
        Self { spec }
    }

    fn file(&self, call_id: &CallId, input: &Value) -> Result<NewArtifact, String> {
        let given = |name: &str| input.get(name).and_then(Value::as_str);
        let (content, plain) = match (given("content"), given("content_base64")) {
            (Some(text), None) => (text.as_bytes().to_vec(), "text/plain"),
            (None, Some(bytes)) => {
                let bytes = BASE64_STANDARD.decode(bytes.trim());
                (bytes.map_err(|error| format!("content_base64 is no base64: {error}"))?, artifact::BYTES)
            }
            _ => return Err("give either content or content_base64".to_owned()),
        };
        let media_type = given("media_type").unwrap_or(plain);
        NewArtifact::new(call_id, 0, given("name").unwrap_or_default(), media_type, content)
    }
}

#[async_trait]
impl Tool for SaveArtifactTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn timeout(&self) -> Duration {
        Duration::from_secs(10)
    }

    async fn call(&self, invocation: Invocation<'_>) -> Result<Value, ToolError> {
        self.answer(invocation).await.map(|answer| answer.output)
    }

    async fn answer(&self, invocation: Invocation<'_>) -> Result<Answer, ToolError> {
        let wrong = |why| ToolError::Final(format!("the file was not kept: {why}"));
        let file = self.file(invocation.call_id, invocation.input).map_err(wrong)?;
        Ok(Answer { artifacts: vec![file.clone()], ..Answer::from(files::as_json(&file)) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::Identity;

    async fn save(input: Value) -> Result<Answer, ToolError> {
        let tool = SaveArtifactTool::new("save_artifact");
        let (call_id, identity) = ("c".into(), Identity::default());
        let timeout = tool.timeout();
        tool.answer(Invocation { call_id: &call_id, input: &input, timeout, identity: &identity }).await
    }

    #[tokio::test]
    async fn texts_and_bytes_become_files() {
        let text =
            save(json!({"name": "a.md", "media_type": "text/markdown", "content": "# hi"})).await.unwrap();
        assert_eq!(text.output["artifact_id"], text.artifacts[0].id.as_str());
        assert_eq!((&text.output["bytes"], &text.output["media_type"]), (&json!(4), &json!("text/markdown")));
        let bytes = save(json!({"name": "a.bin", "content_base64": "AAEC"})).await.unwrap();
        assert_eq!(
            (&*bytes.artifacts[0].content, bytes.artifacts[0].media_type.as_str()),
            (&[0, 1, 2][..], artifact::BYTES)
        );
    }

    #[tokio::test]
    async fn a_missing_file_is_reported_and_not_retried() {
        for (input, word) in [
            (json!({"name": "a"}), "either"),
            (json!({"name": "a", "content": "", "content_base64": ""}), "either"),
            (json!({"name": "a", "content_base64": "%"}), "base64"),
            (json!({"name": "../a", "content": ""}), "slashes"),
            (json!({"name": "a", "content": "", "media_type": "x"}), "media type"),
        ] {
            let error = save(input).await.unwrap_err();
            assert!(matches!(&error, ToolError::Final(text) if text.contains(word)), "{error}");
        }
    }
}
