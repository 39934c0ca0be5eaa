//! A stream of events ends when the key or the token of its request does.

use super::{CredentialEnd, Principals};
use axum::body::Body;
use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;
use axum::response::Response;
use futures::StreamExt as _;
use std::sync::Arc;
use std::time::Duration;
use turnstone_domain::{Clock, Timestamp};

/// The clock is read this often for the end of a token. A clock that is set forward ends streams in time.
const LOOK_MS: u64 = 400;

/// Ends the body of a stream of events when its key is revoked or expires, or its token expires. Other responses stay as
/// they are.
pub(crate) fn until(principals: &Principals, end: &CredentialEnd, response: Response) -> Response {
    let is_stream = |kind: &HeaderValue| kind.as_bytes().starts_with(b"text/event-stream");
    if !response.headers().get(CONTENT_TYPE).is_some_and(is_stream) {
        return response;
    }
    match end {
        CredentialEnd::Key(held) => {
            let (watched, over) = (principals.keyring.watch(), held.over.clone());
            response.map(|body| {
                let events = body.into_data_stream().take_until(over.cancelled_owned());
                Body::from_stream(events.inspect(move |_| {
                    let _ = &watched;
                }))
            })
        }
        CredentialEnd::Token(ends_at) => {
            let end = reached(Arc::clone(&principals.clock), *ends_at);
            response.map(|body| Body::from_stream(body.into_data_stream().take_until(Box::pin(end))))
        }
    }
}

/// Returns at a time of the clock.
async fn reached(clock: Arc<dyn Clock>, time: Timestamp) {
    loop {
        let left = time.since(clock.now());
        match u64::try_from(left) {
            Ok(left @ 1..) => tokio::time::sleep(Duration::from_millis(left.min(LOOK_MS))).await,
            _ => return,
        }
    }
}
