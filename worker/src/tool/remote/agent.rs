//! An agent on another server, called as a tool.

use super::a2a::A2a;
use super::agent_protocol::AgentProtocol;
use super::engaging::Engaging;
use crate::tool::identity::PeerRequest;
use crate::tool::{Invocation, Tool, ToolError, Transport, within};
use async_trait::async_trait;
use backon::{BackoffBuilder, ExponentialBuilder};
use serde_json::{Map, Value, json};
use std::time::Duration;
use turnstone_domain::agent::ToolSpec;
use turnstone_domain::question::Question;

/// The most consecutive polls of the same work without an answer.
pub(super) const MOST_LOST: u32 = 20;
/// The longest interval between two polls.
const SLOWEST: Duration = Duration::from_secs(3);
/// The longest description of a key in an agent's question, in characters.
const MEANING: usize = 2_000;

/// A request to a remote agent.
pub(super) struct RemoteRequest<'a> {
    /// The id of the call, on both servers.
    pub call: &'a str,
    /// Its task.
    pub text: String,
    /// The engagement, for a Turnstone server that trusts us.
    pub peer_request: Option<&'a PeerRequest>,
}

/// The result of beginning a call.
pub(super) enum Begun {
    /// It works, under this handle.
    Under(Value),
    /// It answered at once.
    Done(Value),
}

/// The protocol of a remote agent.
#[derive(Debug)]
pub(super) enum Speech {
    /// The protocol of OpenAgentSpec's server.
    Engaging(Engaging),
    /// The Agent Protocol.
    AgentProtocol(AgentProtocol),
    /// A2A.
    A2a(A2a),
}

/// A remote agent, as a tool of this worker.
#[derive(Debug)]
pub struct RemoteAgent {
    /// Its place: its name in the configuration, or its address.
    pub(super) place: String,
    /// Its description for the model.
    pub(super) spec: ToolSpec,
    /// Its protocol.
    pub(super) speech: Speech,
    /// True if its server trusts our statements about depth, budget and user.
    pub(super) peer: bool,
    /// The longest that one call waits for it.
    pub(super) timeout: Duration,
    /// The most tokens that are reserved for a call.
    pub(super) max_tokens: i64,
}

impl RemoteAgent {
    async fn ask(&self, invocation: &Invocation<'_>, peer_request: &PeerRequest) -> Result<Value, ToolError> {
        let request = RemoteRequest {
            call: invocation.call_id.as_str(),
            text: text_of(invocation.input),
            peer_request: Some(peer_request).filter(|_| self.peer),
        };
        if let Some(handle) = &peer_request.handle {
            return match &self.speech {
                Speech::Engaging(speech) => speech.follow(handle, peer_request).await,
                Speech::AgentProtocol(speech) => speech.follow(handle, peer_request).await,
                Speech::A2a(speech) => speech.follow(handle, &request, peer_request).await,
            };
        }
        let begun = match &self.speech {
            Speech::Engaging(speech) => speech.begin(&request).await?,
            Speech::AgentProtocol(speech) => speech.begin(&request).await?,
            Speech::A2a(speech) => speech.begin(&request).await?,
        };
        match begun {
            Begun::Done(output) => Ok(output),
            Begun::Under(handle) => Err(ToolError::Begun(Box::new(handle))),
        }
    }
}

#[async_trait]
impl Tool for RemoteAgent {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn timeout(&self) -> Duration {
        self.timeout
    }

    fn transport(&self) -> Transport {
        Transport::Http
    }

    fn tokens(&self) -> Option<i64> {
        Some(self.max_tokens)
    }

    async fn call(&self, invocation: Invocation<'_>) -> Result<Value, ToolError> {
        let Some(peer_request) = invocation.identity.peer_request.clone() else {
            let text = format!("agent {}: it takes engagements only", self.spec.name);
            return Err(ToolError::Refused(text));
        };
        let request = self.ask(&invocation, &peer_request);
        within(invocation.timeout, request, || format!("agent {}: it has not ended", self.spec.name)).await
    }

    fn place(&self) -> Option<&str> {
        Some(&self.place)
    }
}

/// The state of remote work after its cancellation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RemoteCancellation {
    /// It has ended, or will.
    Ends,
    /// Its server does not know it.
    Unknown,
}

/// Returns the schema of the one argument of an agent that is called as a tool.
pub(super) fn input_schema() -> Value {
    json!({"type": "object", "required": ["input"], "additionalProperties": false,
           "properties": {"input": {"type": "string", "description": "What this agent is to do, in full sentences."}}})
}

/// Returns the task of an agent.
fn text_of(arguments: &Value) -> String {
    match arguments.get("input") {
        Some(Value::String(text)) => text.clone(),
        _ => arguments.to_string(),
    }
}

/// Returns a question from a remote agent's keys and their descriptions.
///
/// # Errors
/// A sentence with the reason why it cannot be asked.
pub(super) fn question(keys: Option<&Map<String, Value>>) -> Result<Question, String> {
    let meaning = |text: &Value| text.as_str().unwrap_or_default().chars().take(MEANING).collect::<String>();
    let keys = keys.into_iter().flatten().map(|(key, text)| (key.clone(), meaning(text).into()));
    Question::read(&json!({"request_keys": keys.collect::<Map<String, Value>>()}))
        .map_err(|why| format!("it asks what cannot be asked: {why}"))
}

/// The intervals between polls of the same work, and the number of consecutive ones without an answer. A lost
/// answer is requested again, because the work continues meanwhile, and is paid for.
pub(super) struct Polling {
    pauses: Box<dyn Iterator<Item = Duration> + Send>,
    lost: u32,
}

impl Default for Polling {
    fn default() -> Self {
        let pauses = ExponentialBuilder::default()
            .with_min_delay(Duration::from_millis(100))
            .with_max_delay(SLOWEST)
            .with_factor(1.5)
            .without_max_times()
            .build();
        Self { pauses: Box::new(pauses), lost: 0 }
    }
}

impl Polling {
    /// Records an answer.
    pub(super) fn heard(&mut self) {
        self.lost = 0;
    }

    /// Records a poll that was lost, or that the server could not answer at that time.
    ///
    /// # Errors
    /// The error, when too many were lost in a row, or when a retry cannot help.
    pub(super) fn lost(&mut self, error: ToolError) -> Result<(), ToolError> {
        self.lost += 1;
        match error {
            ToolError::Failed(_) | ToolError::Busy(..) if self.lost < MOST_LOST => Ok(()),
            error => Err(error),
        }
    }

    /// Waits for the time of the next poll.
    pub(super) async fn pause(&mut self) {
        tokio::time::sleep(self.pauses.next().unwrap_or(SLOWEST)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Issue 7: a lost answer is requested again, up to a limit; an error that a retry cannot change ends the
    /// call at once.
    #[test]
    fn lost_answers_are_borne_for_a_while() {
        let lost = || ToolError::Failed("lost".to_owned());
        let mut polling = Polling::default();
        for round in 0..2 {
            for _ in 1..MOST_LOST {
                polling.lost(lost()).unwrap_or_else(|error| panic!("round {round}: {error}"));
            }
            polling.heard();
        }
        (1..MOST_LOST).for_each(|_| polling.lost(ToolError::Busy("busy".to_owned(), None)).unwrap());
        assert_eq!(polling.lost(lost()), Err(lost()));
        let end = ToolError::Final("no".to_owned());
        assert_eq!(Polling::default().lost(end.clone()), Err(end));
    }
}
