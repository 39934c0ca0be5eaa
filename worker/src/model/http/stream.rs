//! Reads an answer from the connection: server-sent events, or one JSON document.
//!
//! Memory is bounded for every provider. [`HELD`] bounds a line, an event, and the assembled answer. [`WIRE`]
//! bounds the whole stream, which is mostly wrapping.

use super::failure;
use crate::model::ModelError;
use crate::model::said::Listener;
use crate::tool::lines::lines;
use crate::tool::outbound::{self, BodyError, excerpt};
use eventsource_stream::{EventStream, EventStreamError};
use futures::StreamExt;
use reqwest::Response;
use serde_json::Value;

/// The most bytes of an answer, and of one event, that are held.
const HELD: usize = 4 * 1024 * 1024;
/// The most bytes of a stream that are read: every token comes in a wrapping of about a hundred bytes.
const WIRE: usize = 64 * 1024 * 1024;

/// The part of an answer that has arrived, in the format of one provider.
pub trait Assembly: Default + Send {
    /// Takes one event of a stream, and passes its text to `listener`.
    ///
    /// # Errors
    /// A sentence that says why it is no part of an answer.
    fn absorb(&mut self, event: &Value, listener: &Listener) -> Result<(), String>;

    /// Takes an answer that came in one piece.
    ///
    /// # Errors
    /// A sentence that says why it is no answer.
    fn absorb_whole(&mut self, document: &Value) -> Result<(), String>;

    /// Returns the failure that an event reports.
    fn failure<'a>(&self, event: &'a Value) -> Option<&'a Value> {
        (!event["error"].is_null()).then(|| &event["error"])
    }

    /// Returns true if the answer is complete; only its usage may still follow.
    fn is_finished(&self) -> bool;

    /// Returns true if no event follows.
    fn is_over(&self) -> bool;

    /// Returns the bytes of the texts and arguments that it holds.
    fn held(&self) -> usize;
}

/// Reads a streamed answer to its end.
pub(super) async fn read<A: Assembly>(
    response: Response,
    listener: &Listener,
    describe: &(impl Fn(&str) -> String + Sync),
) -> Result<A, ModelError> {
    let mut events = EventStream::new(Box::pin(lines(response, HELD, WIRE)));
    let mut assembly = A::default();
    while let Some(event) = events.next().await {
        let event = match event {
            Ok(event) => event,
            // The answer is complete; only its usage may be missing.
            Err(EventStreamError::Transport(BodyError::Lost(_))) if assembly.is_finished() => {
                return Ok(assembly);
            }
            Err(EventStreamError::Transport(error @ BodyError::Lost(_))) => {
                return Err(ModelError::Unavailable(describe(&error.to_string())));
            }
            Err(EventStreamError::Transport(error @ BodyError::TooLarge(_))) => {
                return Err(ModelError::Malformed(describe(&error.to_string())));
            }
            Err(EventStreamError::Utf8(_)) => {
                return Err(ModelError::Malformed(describe("the stream is not UTF-8")));
            }
            Err(EventStreamError::Parser(_)) => {
                return Err(ModelError::Malformed(describe("the stream is not one of server-sent events")));
            }
        };
        if event.data.trim() == "[DONE]" {
            break;
        }
        let said: Value = serde_json::from_str(&event.data).map_err(|error| {
            ModelError::Malformed(describe(&format!("a piece of the stream is not JSON: {error}")))
        })?;
        let failed = assembly.failure(&said).or((event.event == "error").then_some(&said));
        if let Some(error) = failed {
            return Err(failure::in_document(error, describe));
        }
        assembly.absorb(&said, listener).map_err(|problem| ModelError::Malformed(describe(&problem)))?;
        if assembly.held() > HELD {
            return Err(ModelError::Malformed(describe(&BodyError::TooLarge(HELD).to_string())));
        }
        if assembly.is_over() {
            break;
        }
    }
    if assembly.is_finished() {
        return Ok(assembly);
    }
    Err(ModelError::Unavailable(describe("the stream ended before the answer was complete")))
}

/// Reads an answer that came in one piece.
pub(super) async fn read_whole<A: Assembly>(
    response: Response,
    describe: &(impl Fn(&str) -> String + Sync),
) -> Result<A, ModelError> {
    let body = outbound::read_body(response, HELD).await.map_err(|error| match error {
        BodyError::Lost(_) => ModelError::Unavailable(describe(&error.to_string())),
        BodyError::TooLarge(_) => ModelError::Malformed(describe(&error.to_string())),
    })?;
    let document: Value = serde_json::from_slice(&body).map_err(|error| {
        let begins = excerpt(&String::from_utf8_lossy(&body[..body.len().min(400)]), 100);
        ModelError::Malformed(describe(&format!(
            "the answer is neither a stream nor JSON ({error}); it begins: {begins}"
        )))
    })?;
    let mut assembly = A::default();
    if let Some(error) = assembly.failure(&document) {
        return Err(failure::in_document(error, describe));
    }
    assembly.absorb_whole(&document).map_err(|problem| ModelError::Malformed(describe(&problem)))?;
    Ok(assembly)
}
