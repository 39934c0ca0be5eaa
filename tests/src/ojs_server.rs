//! One OJS server without workers: the API over real HTTP, a scheduler that runs only on demand, and a clock
//! that only a case moves.

use crate::{Backend, Fleet, wait};
use reqwest::header::{CONTENT_TYPE, HeaderMap};
use reqwest::{Client, Method};
use serde_json::Value;

/// The server of one case. Call [`OjsServer::end`] at the end of it.
pub struct OjsServer {
    /// Everything behind it: the store, the clock, and the database.
    pub fleet: Fleet,
    http: Client,
}

/// One answer.
#[derive(Debug)]
pub struct Reply {
    /// The status.
    pub status: u16,
    /// The headers.
    pub headers: HeaderMap,
    /// The body, unchanged.
    pub text: String,
}

impl Reply {
    /// Returns the body, which has to be JSON.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }

    /// Returns the code of an error.
    pub fn code(&self) -> String {
        self.json()["error"]["code"].as_str().unwrap_or_default().to_owned()
    }

    /// Returns a header, empty when there is none.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().expect("a text"))
    }

    /// Returns the reply itself, when it has this status.
    #[track_caller]
    pub fn expect(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{}", self.text);
        self
    }
}

impl OjsServer {
    /// Starts one on an empty database.
    pub async fn start(backend: Backend) -> Self {
        Self::over(Fleet::builder().on(backend).workers(0).start().await)
    }

    /// Starts one on a fleet that was built in another way.
    pub fn over(fleet: Fleet) -> Self {
        let http = crate::http::client_builder().timeout(wait::PATIENCE).build().expect("a client");
        Self { fleet, http }
    }

    /// Sends one request. The headers may override the media type of the body, which is that of OJS.
    pub async fn send(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Vec<u8>>,
    ) -> Reply {
        let body: Vec<u8> = body.into();
        let mut request = self.http.request(method, format!("{}{path}", self.fleet.url));
        if !body.is_empty() && !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type")) {
            request = request.header(CONTENT_TYPE, "application/openjobspec+json");
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let answer = request.body(body).send().await.expect("an answer");
        let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
        Reply { status, headers, text: answer.text().await.expect("a body") }
    }

    /// Sends a GET request.
    pub async fn get(&self, path: &str) -> Reply {
        self.send(Method::GET, path, &[], "").await
    }

    /// Sends a POST request with a value.
    pub async fn post(&self, path: &str, body: &Value) -> Reply {
        self.send(Method::POST, path, &[], body.to_string()).await
    }

    /// Sends a POST request with any body.
    pub async fn post_text(&self, path: &str, body: impl Into<Vec<u8>>) -> Reply {
        self.send(Method::POST, path, &[], body).await
    }

    /// Sends a PUT request with a value.
    pub async fn put(&self, path: &str, body: &Value) -> Reply {
        self.send(Method::PUT, path, &[], body.to_string()).await
    }

    /// Sends a PATCH request with a value.
    pub async fn patch(&self, path: &str, body: &Value) -> Reply {
        self.send(Method::PATCH, path, &[], body.to_string()).await
    }

    /// Sends a DELETE request.
    pub async fn delete(&self, path: &str) -> Reply {
        self.send(Method::DELETE, path, &[], "").await
    }

    /// Enqueues a job, which has to be accepted, and returns its id.
    pub async fn push(&self, job: &Value) -> String {
        let reply = self.post("/ojs/v1/jobs", job).await.expect(201);
        reply.json()["job"]["id"].as_str().expect("an id").to_owned()
    }

    /// Returns the current state of the job.
    pub async fn job(&self, id: &str) -> Value {
        self.get(&format!("/ojs/v1/jobs/{id}")).await.expect(200).json()["job"].clone()
    }

    /// Returns the number of stored jobs.
    pub async fn stored_jobs(&self) -> i64 {
        self.fleet.number("SELECT count(*) FROM jobs").await
    }

    /// Ends the server. Cases may leave leases of workers over HTTP, so the invariants of a fleet are not checked.
    pub async fn end(self) {
        self.fleet.end_unchecked().await;
    }

    /// Advances the time, then lets the scheduler do its due work.
    pub async fn pass_ms(&self, ms: i64) {
        self.fleet.clock.advance_ms(ms);
        self.fleet.tick().await;
    }
}
