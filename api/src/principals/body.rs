//! A stream of events ends when the key of its request does.

use super::{Held, Keyring};
use axum::body::Body;
use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;
use axum::response::Response;
use futures::StreamExt as _;
use std::sync::Arc;

/// Ends the body of a stream of events when its key is revoked or expires. Other responses stay as they are.
pub(crate) fn until(keyring: &Arc<Keyring>, held: &Held, response: Response) -> Response {
    let is_stream = |kind: &HeaderValue| kind.as_bytes().starts_with(b"text/event-stream");
    if !response.headers().get(CONTENT_TYPE).is_some_and(is_stream) {
        return response;
    }
    let (watched, over) = (keyring.watch(), held.over.clone());
    response.map(|body| {
        let events = body.into_data_stream().take_until(over.cancelled_owned());
        Body::from_stream(events.inspect(move |_| {
            let _ = &watched;
        }))
    })
}
