//! A receiver of webhooks: real HTTP, a log of the requests, and answers that the test chooses.

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio_util::task::AbortOnDropHandle;

/// An answer of the receiver.
#[derive(Clone, Debug)]
pub enum Receipt {
    /// A status with a text.
    Status(u16, String),
    /// A redirect to this address.
    Redirect(String),
    /// A failure whose body never ends.
    Endless,
    /// Nothing, for ever.
    Hang,
}

impl Receipt {
    /// Returns a status without a text.
    pub fn status(status: u16) -> Self {
        Self::Status(status, String::new())
    }
}

/// A received request.
#[derive(Clone, Debug)]
pub struct Received {
    /// The headers.
    pub headers: HeaderMap,
    /// The body, byte for byte.
    pub body: String,
}

impl Received {
    /// Returns a header.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().expect("a text"))
    }

    /// Returns the body as JSON.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).expect("JSON")
    }
}

type Script = Box<dyn Fn(usize) -> Receipt + Send + Sync>;

struct Log {
    received: Mutex<Vec<Received>>,
    script: Script,
}

/// The receiver.
pub struct Receiver {
    /// Its address.
    pub url: String,
    log: Arc<Log>,
    _serving: AbortOnDropHandle<()>,
}

impl Receiver {
    /// Starts a receiver that accepts everything.
    pub async fn start() -> Self {
        Self::answering(|_| Receipt::status(204)).await
    }

    /// Starts a receiver that answers each request by its number, from 0, with the result of the script.
    pub async fn answering(script: impl Fn(usize) -> Receipt + Send + Sync + 'static) -> Self {
        let log = Arc::new(Log { received: Mutex::default(), script: Box::new(script) });
        let app = Router::new().fallback(receive).with_state(Arc::clone(&log));
        let (url, serving) = crate::http::serve(app).await;
        let url = format!("{url}/hook");
        Self { url, log, _serving: serving }
    }

    fn log(&self) -> MutexGuard<'_, Vec<Received>> {
        self.log.received.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns all requests, in order.
    pub fn received(&self) -> Vec<Received> {
        self.log().clone()
    }

    /// Returns the number of requests.
    pub fn count(&self) -> usize {
        self.log().len()
    }
}

async fn receive(State(log): State<Arc<Log>>, headers: HeaderMap, body: Bytes) -> Response {
    let body = String::from_utf8(body.to_vec()).expect("UTF-8");
    let number = {
        let mut received = log.received.lock().unwrap_or_else(PoisonError::into_inner);
        received.push(Received { headers, body });
        received.len() - 1
    };
    let status = |status| StatusCode::from_u16(status).expect("a status");
    match (log.script)(number) {
        Receipt::Status(code, text) => (status(code), text).into_response(),
        Receipt::Redirect(place) => (status(307), [(header::LOCATION, place)]).into_response(),
        Receipt::Endless => {
            let chunks =
                futures::stream::repeat_with(|| Ok::<_, std::io::Error>(Bytes::from_static(&[b'x'; 4096])));
            (status(500), Body::from_stream(chunks)).into_response()
        }
        Receipt::Hang => std::future::pending().await,
    }
}
