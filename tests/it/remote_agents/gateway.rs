//! A gateway between two servers that loses some requests and answers.

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use reqwest::Client;
use std::sync::Arc;
use tokio_util::task::AbortOnDropHandle;

/// The fate of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// The request arrives and is answered.
    Passes,
    /// The request arrives, and its answer is lost.
    Unanswered,
    /// The request arrives, and is never answered.
    Silence,
    /// The request does not arrive.
    Refused(StatusCode),
}

/// Decides the fate of a request by its body.
type Judge = dyn Fn(&str) -> Fate + Send + Sync;

struct Gateway {
    far: String,
    http: Client,
    judge: Box<Judge>,
}

/// Starts a gateway in front of a server and returns its address.
pub async fn before(
    far: &str,
    judge: impl Fn(&str) -> Fate + Send + Sync + 'static,
) -> (String, AbortOnDropHandle<()>) {
    let http = turnstone_tests::http::client();
    let gateway = Arc::new(Gateway { far: far.to_owned(), http, judge: Box::new(judge) });
    let app = Router::new().fallback(pass).with_state(gateway);
    turnstone_tests::http::serve(app).await
}

async fn pass(
    State(gateway): State<Arc<Gateway>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let fate = (gateway.judge)(&String::from_utf8_lossy(&body));
    if let Fate::Refused(status) = fate {
        return status.into_response();
    }
    let mut request = gateway.http.request(method, format!("{}{uri}", gateway.far)).body(body);
    for name in [header::HOST, header::CONTENT_TYPE, header::ACCEPT, "a2a-version".parse().unwrap()] {
        if let Some(value) = headers.get(&name) {
            request = request.header(name, value);
        }
    }
    let answer = request.send().await.unwrap();
    let (status, kind) = (answer.status(), answer.headers().get(header::CONTENT_TYPE).cloned());
    // Piece by piece, because a stream of events stays open.
    let pieces = futures::stream::try_unfold(answer, async |mut answer| {
        answer.chunk().await.map(|piece| piece.map(|piece| (piece, answer)))
    });
    let body = Body::from_stream(pieces);
    match fate {
        Fate::Unanswered => StatusCode::BAD_GATEWAY.into_response(),
        Fate::Silence => std::future::pending().await,
        _ => {
            let mut response = (status, body).into_response();
            response.headers_mut().extend(kind.map(|kind| (header::CONTENT_TYPE, kind)));
            response
        }
    }
}
