//! An agent of Oracle's cloud (OCI Generative AI Agents): a session for each conversation, and a signed request for each
//! message.

use super::spec_of_document;
use super::wire::{REQUEST, Wire};
use crate::oci::OciSigner;
use crate::tool::{Invocation, Tool, ToolError, Transport, within};
use async_trait::async_trait;
use reqwest::Client;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use turnstone_domain::agent::ToolSpec;
use turnstone_specs::agent_spec::model::OciAgent;
use url::Url;

/// The version of the API.
const VERSION: &str = "20240531";
/// The longest that an agent works for one message.
const LONGEST: Duration = Duration::from_secs(600);

/// An agent. Each call sends one message and returns the answer with the session.
pub struct OciAgentTool {
    spec: ToolSpec,
    wire: Wire,
    endpoint: String,
    signer: Arc<OciSigner>,
}

impl OciAgentTool {
    /// Returns the agent behind a service endpoint that was checked.
    pub(crate) fn new(agent: &OciAgent, address: Url, client: Client, signer: Arc<OciSigner>) -> Self {
        let spec = spec_of_document(&agent.head);
        let wire = Wire::new(address, BTreeMap::new(), client);
        Self { spec, wire, endpoint: agent.agent_endpoint_id.clone(), signer }
    }

    async fn post(&self, path: &[&str], body: &Value, longest: Duration) -> Result<Value, ToolError> {
        let segments = [&[VERSION, "agentEndpoints", self.endpoint.as_str()], path].concat();
        let (url, bytes) = (self.wire.below(&segments), body.to_string().into_bytes());
        let headers = self.signer.headers(&url, &bytes).map_err(ToolError::Refused)?;
        let request = self.wire.post(url)?.timeout(longest).headers(headers).body(bytes);
        let response = self.wire.send_once(request, |status| (200..300).contains(&status)).await?;
        self.wire.json(response).await
    }

    async fn ask(&self, input: &Value) -> Result<Value, ToolError> {
        let session = match input["context"].as_str() {
            Some(known) => known.to_owned(),
            None => {
                let begun = self.post(&["sessions"], &json!({"displayName": "turnstone"}), REQUEST).await;
                // Without its answer there is a session that no message is in.
                let begun = begun.map_err(|error| match error {
                    ToolError::Lost(text) => ToolError::Unreached(text),
                    error => error,
                })?;
                let id = begun["id"].as_str().filter(|id| !id.is_empty());
                id.ok_or_else(|| self.wire.unusable("it answered with no session"))?.to_owned()
            }
        };
        let body = json!({"userMessage": input["input"], "sessionId": session, "shouldStream": false});
        let reported = self.post(&["actions", "chat"], &body, LONGEST).await?;
        match reported["message"]["content"]["text"].as_str() {
            Some(text) => Ok(json!({"text": text, "context": session})),
            None => Err(self.wire.unusable("its answer has no text")),
        }
    }
}

#[async_trait]
impl Tool for OciAgentTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn timeout(&self) -> Duration {
        LONGEST
    }

    fn transport(&self) -> Transport {
        Transport::Http
    }

    async fn call(&self, invocation: Invocation<'_>) -> Result<Value, ToolError> {
        let answered = self.ask(invocation.input);
        within(invocation.timeout, answered, || format!("agent {}: it has not answered", self.spec.name))
            .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oci::tests::{assert_signed, signer};
    use crate::served::serve;
    use crate::tool::{Identity, outbound};
    use axum::Router;
    use axum::extract::State;
    use axum::http::{HeaderMap, Uri};
    use std::sync::Mutex;
    use turnstone_domain::CallId;
    use turnstone_specs::agent_spec::model::{Head, OciClientConfig};

    type Bodies = Arc<Mutex<Vec<Value>>>;

    async fn answer(State(seen): State<Bodies>, uri: Uri, headers: HeaderMap, body: String) -> String {
        assert_signed(&headers, &format!("post {}", uri.path()), body.as_bytes());
        seen.lock().unwrap().push(serde_json::from_str(&body).unwrap());
        match uri.path() {
            "/20240531/agentEndpoints/ocid1.endpoint/sessions" => json!({"id": "s-1"}),
            "/20240531/agentEndpoints/ocid1.endpoint/actions/chat" => {
                json!({"sessionId": "s-1", "message": {"role": "ASSISTANT", "content": {"text": "It is low."}}})
            }
            other => panic!("{other}"),
        }
        .to_string()
    }

    /// AGS-44: one session for a conversation, by the documentation of OCI Generative AI Agents.
    #[tokio::test]
    async fn an_agent_of_the_cloud_is_asked_in_one_session() {
        let seen = Bodies::default();
        let app = Router::new().fallback(answer).with_state(Arc::clone(&seen));
        let (address, _serving) = serve(app).await;
        let url = Url::parse(&format!("http://{address}")).unwrap();
        let head = Head { id: "a".into(), name: "tides".into(), description: None, metadata: Value::Null };
        let client_config = OciClientConfig {
            head: head.clone(),
            service_endpoint: url.to_string(),
            auth_type: "API_KEY".into(),
            auth_profile: None,
            auth_file_location: None,
        };
        let agent = OciAgent {
            head,
            inputs: Vec::new(),
            outputs: Vec::new(),
            agent_endpoint_id: "ocid1.endpoint".into(),
            client_config,
            retry_policy: None,
        };
        let tool = OciAgentTool::new(&agent, url, outbound::open_client().unwrap(), signer());
        let (call_id, identity) = (CallId::from("c"), Identity::default());
        let mut context = Value::Null;
        for _ in 0..2 {
            let input = json!({"input": "When?", "context": context, "task": null});
            let timeout = Duration::from_secs(20);
            let requested = Invocation { call_id: &call_id, input: &input, timeout, identity: &identity };
            let reported = tool.call(requested).await.unwrap();
            assert_eq!(reported, json!({"text": "It is low.", "context": "s-1"}));
            context = reported["context"].clone();
        }
        let seen = seen.lock().unwrap();
        assert_eq!(seen.len(), 3, "one session and two messages");
        assert_eq!(seen[2], json!({"userMessage": "When?", "sessionId": "s-1", "shouldStream": false}));
    }
}
