//! Reads an answer from the connection: server-sent events, or one JSON document.
//!
//! Memory is bounded for every provider. [`HELD`] bounds a line, an event, and the assembled answer. [`WIRE`]
//! bounds the whole stream, which is mostly wrapping.

use super::{Api, PartialAnswer, failure, unicode};
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

/// Reads a streamed answer to its end.
pub(super) async fn read(
    response: Response,
    api: &dyn Api,
    listener: &Listener,
    describe: &(impl Fn(&str) -> String + Sync),
) -> Result<PartialAnswer, ModelError> {
    let mut events = EventStream::new(Box::pin(lines(response, HELD, WIRE)));
    let mut answer = PartialAnswer::default();
    let whole = unicode::WholeText::default();
    while let Some(event) = events.next().await {
        let event = match event {
            Ok(event) => event,
            // The answer is complete; only its usage may be missing.
            Err(EventStreamError::Transport(BodyError::Lost(_))) if answer.ended.is_some() => {
                return Ok(answer);
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
        match event.data.trim() {
            "[DONE]" => break,
            // Some gateways keep a connection alive with them.
            "" => continue,
            _ => {}
        }
        let (said, has_halves) = unicode::read(&event.data).map_err(|error| {
            ModelError::Malformed(describe(&format!("a piece of the stream is not JSON: {error}")))
        })?;
        answer.has_halves |= has_halves;
        let failed = api.failure(&said).or((event.event == "error").then_some(&said));
        if let Some(error) = failed {
            return Err(failure::in_document(error, describe));
        }
        let absorbed = match answer.has_halves {
            false => api.absorb(&mut answer, &said, listener),
            true => api.absorb(&mut answer, &said, &whole.listener(listener)),
        };
        absorbed.map_err(|problem| ModelError::Malformed(describe(&answer.incomplete(&problem))))?;
        whole.say(listener);
        if answer.held() > HELD {
            return Err(ModelError::Malformed(describe(&BodyError::TooLarge(HELD).to_string())));
        }
        if answer.is_over {
            break;
        }
    }
    if answer.ended.is_some() {
        return Ok(answer);
    }
    let problem = "the stream ended before the answer was complete";
    // The server ended it in order, so it would probably end the next one, too; and what has begun is charged.
    Err(match answer.has_begun || answer.held() > 0 {
        true => ModelError::Cut(describe(&answer.incomplete(problem))),
        false => ModelError::Unavailable(describe(problem)),
    })
}

/// Reads an answer that came in one piece.
pub(super) async fn read_whole(
    response: Response,
    api: &dyn Api,
    describe: &(impl Fn(&str) -> String + Sync),
) -> Result<PartialAnswer, ModelError> {
    let document = document(response, describe).await?;
    if let Some(error) = api.failure(&document) {
        return Err(failure::in_document(error, describe));
    }
    let mut answer = PartialAnswer::default();
    api.absorb_whole(&mut answer, &document)
        .map_err(|problem| ModelError::Malformed(describe(&answer.incomplete(&problem))))?;
    // A document that is whole is no half answer, even if it does not say why it ended.
    Ok(answer)
}

/// Reads a response that is one JSON document.
pub(super) async fn document(
    response: Response,
    describe: &(impl Fn(&str) -> String + Sync),
) -> Result<Value, ModelError> {
    let body = outbound::read_body(response, HELD).await.map_err(|error| match error {
        BodyError::Lost(_) => ModelError::Unavailable(describe(&error.to_string())),
        BodyError::TooLarge(_) => ModelError::Malformed(describe(&error.to_string())),
    })?;
    let read = std::str::from_utf8(&body).map_err(|error| error.to_string());
    read.and_then(|text| unicode::read_whole(text).map_err(|error| error.to_string())).map_err(|error| {
        let begins = excerpt(&String::from_utf8_lossy(&body[..body.len().min(400)]), 100);
        ModelError::Malformed(describe(&format!(
            "the answer is neither a stream nor JSON ({error}); it begins: {begins}"
        )))
    })
}
