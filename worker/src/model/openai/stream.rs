//! Reading an answer off the wire: server-sent events, or one JSON document.

use super::assembly::Assembly;
use super::failure;
use crate::model::ModelError;
use crate::tool::outbound::{self, BodyError, excerpt};
use eventsource_stream::{EventStream, EventStreamError};
use futures::{Stream, StreamExt, stream};
use reqwest::Response;
use serde_json::Value;

/// Reads a streamed answer up to `[DONE]`.
pub(super) async fn read(
    response: Response,
    cap: usize,
    told: &(impl Fn(&str) -> String + Sync),
) -> Result<Assembly, ModelError> {
    let mut events = EventStream::new(Box::pin(lines(response, cap)));
    let mut assembly = Assembly::default();
    while let Some(event) = events.next().await {
        let event = match event {
            Ok(event) => event,
            // The answer is complete; only its usage may be missing.
            Err(EventStreamError::Transport(BodyError::Lost(_))) if assembly.is_finished() => {
                return Ok(assembly);
            }
            Err(EventStreamError::Transport(error @ BodyError::Lost(_))) => {
                return Err(ModelError::Unavailable(told(&error.to_string())));
            }
            Err(EventStreamError::Transport(error @ BodyError::TooLarge(_))) => {
                return Err(ModelError::Malformed(told(&error.to_string())));
            }
            Err(EventStreamError::Utf8(_)) => {
                return Err(ModelError::Malformed(told("the stream is not UTF-8")));
            }
            Err(EventStreamError::Parser(_)) => {
                return Err(ModelError::Malformed(told("the stream is not one of server-sent events")));
            }
        };
        if event.data.trim() == "[DONE]" {
            return Ok(assembly);
        }
        let chunk: Value = serde_json::from_str(&event.data).map_err(|error| {
            ModelError::Malformed(told(&format!("a piece of the stream is not JSON: {error}")))
        })?;
        if let Some(error) = failure::in_document(&chunk, event.event == "error", told) {
            return Err(error);
        }
        assembly.absorb(&chunk).map_err(|problem| ModelError::Malformed(told(&problem)))?;
    }
    if assembly.is_finished() {
        return Ok(assembly);
    }
    Err(ModelError::Unavailable(told("the stream ended before the answer was complete")))
}

/// Reads an answer that came in one piece.
pub(super) async fn read_whole(
    response: Response,
    cap: usize,
    told: &(impl Fn(&str) -> String + Sync),
) -> Result<Assembly, ModelError> {
    let body = outbound::read_body(response, cap).await.map_err(|error| match error {
        BodyError::Lost(_) => ModelError::Unavailable(told(&error.to_string())),
        BodyError::TooLarge(_) => ModelError::Malformed(told(&error.to_string())),
    })?;
    let document: Value = serde_json::from_slice(&body).map_err(|error| {
        let begins = excerpt(&String::from_utf8_lossy(&body[..body.len().min(400)]), 100);
        ModelError::Malformed(told(&format!(
            "the answer is neither a stream nor JSON ({error}); it begins: {begins}"
        )))
    })?;
    if let Some(error) = failure::in_document(&document, false, told) {
        return Err(error);
    }
    let mut assembly = Assembly::default();
    assembly.absorb(&document).map_err(|problem| ModelError::Malformed(told(&problem)))?;
    Ok(assembly)
}

/// The lines of a body, up to `cap` bytes in all. The event parser gets one whole line at a time: it looks at what it
/// holds again for every piece, and it cannot take a byte order mark as the first character of a stream.
fn lines(response: Response, cap: usize) -> impl Stream<Item = Result<Vec<u8>, BodyError>> {
    let mut seen = 0_usize;
    let mut begun = Vec::new();
    let mut at_start = true;
    response.bytes_stream().flat_map(move |chunk| {
        let lines = chunk.map_err(|error| BodyError::Lost(outbound::describe(&error))).and_then(|chunk| {
            seen = seen.saturating_add(chunk.len());
            if seen > cap {
                return Err(BodyError::TooLarge(cap));
            }
            let mut lines = cut(&mut begun, &chunk);
            if let Some(first) = lines.first_mut().filter(|_| at_start) {
                at_start = false;
                if let Some(rest) = first.strip_prefix(b"\xef\xbb\xbf") {
                    *first = rest.to_vec();
                }
            }
            Ok(lines)
        });
        stream::iter(match lines {
            Ok(lines) => lines.into_iter().map(Ok).collect(),
            Err(error) => vec![Err(error)],
        })
    })
}

/// The lines that `chunk` completes; what is left over stays in `begun`.
fn cut(begun: &mut Vec<u8>, chunk: &[u8]) -> Vec<Vec<u8>> {
    let mut lines = Vec::new();
    for piece in chunk.split_inclusive(|byte| *byte == b'\n') {
        begun.extend_from_slice(piece);
        if piece.ends_with(b"\n") {
            lines.push(std::mem::take(begun));
        }
    }
    lines
}
