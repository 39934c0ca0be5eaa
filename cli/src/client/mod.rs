//! The HTTP client of the commands.

pub mod ids;
pub mod outage;
mod received;
pub mod stream;

use crate::config::ClientConfig;
use crate::failure::{Exit, Failure};
use crate::output::Output;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Method, RequestBuilder, Response, Url};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::error::Category;
use std::io;
use std::net::IpAddr;
use std::time::Duration;
use turnstone_domain::{RawJson, RawObject};
use turnstone_ojs::JobBody;
use turnstone_telemetry::SecretRef;
use turnstone_worker::tool::outbound::certificate_problem;

pub use received::Received;

/// The environment variable of the API key when no reference is configured.
const KEY_VARIABLE: &str = "TURNSTONE_API_KEY";
/// How long the server may take to accept a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The longest time for a response other than a stream.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
/// How long a stream may be silent before it counts as broken.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(90);

/// The most elements of a list in one response of the server.
const PAGE: usize = 100;

/// The position of a part in its list, as far as the next part depends on it.
#[derive(Debug, Default, Deserialize)]
struct PartEnd {
    total: Option<u64>,
    next_after: Option<String>,
}

/// A connection to one server.
#[derive(Clone, Debug)]
pub struct Client {
    http: reqwest::Client,
    base: Url,
    output: Output,
}

impl Client {
    /// Returns a client for the configured server. Nothing is sent yet.
    ///
    /// # Errors
    /// The address or the API key cannot be used.
    pub fn new(config: &ClientConfig, output: Output) -> Result<Self, Failure> {
        let base = Url::parse(&config.url).map_err(|error| {
            Failure::usage(format!("the server address cannot be used: {error}"))
                .hint("--url http://127.0.0.1:8080")
        })?;
        install_tls();
        let mut http = reqwest::Client::builder();
        if is_loopback(&base) {
            // A proxy of the environment would look for a loopback server on its own machine.
            http = http.no_proxy();
        }
        let http = http
            .user_agent(concat!("turnstone/", env!("CARGO_PKG_VERSION")))
            .default_headers(key_header(config.api_key.as_ref())?)
            .connect_timeout(CONNECT_TIMEOUT)
            .read_timeout(SILENCE_TIMEOUT)
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .map_err(|error| Failure::failed(format!("the HTTP client cannot be set up: {error}")))?;
        Ok(Self { http, base, output })
    }

    /// Returns the server's address, without credentials.
    #[must_use]
    pub fn address(&self) -> String {
        let mut shown = self.base.clone();
        // Only addresses without a host refuse this, and those carry no credentials.
        let _ = (shown.set_username(""), shown.set_password(None));
        shown.as_str().trim_end_matches('/').to_owned()
    }

    /// Reads a resource.
    ///
    /// # Errors
    /// The error of the server or of the connection.
    pub async fn get<T: DeserializeOwned>(
        &self,
        path: &[&str],
        query: &[(&str, String)],
    ) -> Result<T, Failure> {
        self.answer(self.request(Method::GET, path, query)).await
    }

    /// Reads a member of a resource.
    ///
    /// # Errors
    /// The error of the server or of the connection.
    pub async fn member<T: DeserializeOwned>(
        &self,
        path: &[&str],
        query: &[(&str, String)],
        name: &str,
    ) -> Result<T, Failure> {
        self.part(&self.get(path, query).await?, name)
    }

    /// Reads the first `limit` elements of a list in numbered pages, and the total number, if the server reports it.
    ///
    /// # Errors
    /// The error of the server or of the connection.
    pub async fn list<T: DeserializeOwned>(
        &self,
        path: &[&str],
        filters: &[(&str, String)],
        limit: usize,
    ) -> Result<(Vec<T>, Option<u64>), Failure> {
        self.parts(path, filters, "items", (limit, ["per_page", "page"])).await
    }

    /// Reads the same from a list in slices, which is in the member `name`.
    ///
    /// # Errors
    /// The error of the server or of the connection.
    pub async fn slices<T: DeserializeOwned>(
        &self,
        path: &[&str],
        filters: &[(&str, String)],
        name: &str,
        limit: usize,
    ) -> Result<(Vec<T>, Option<u64>), Failure> {
        self.parts(path, filters, name, (limit, ["limit", "offset"])).await
    }

    async fn parts<T: DeserializeOwned>(
        &self,
        path: &[&str],
        filters: &[(&str, String)],
        name: &str,
        (limit, [size, position]): (usize, [&'static str; 2]),
    ) -> Result<(Vec<T>, Option<u64>), Failure> {
        let per_page = limit.clamp(1, PAGE);
        let (mut list, mut total): (Vec<T>, _) = (Vec::new(), None);
        let mut after: Option<String> = None;
        for page in 1.. {
            // A list that names its last element continues after it.
            let place = match (&after, position) {
                (Some(after), _) => ("after", after.clone()),
                (None, "page") => (position, page.to_string()),
                (None, _) => (position, list.len().to_string()),
            };
            let part = [(size, per_page.to_string()), place];
            let answer: RawObject = self.get(path, &[filters, &part].concat()).await?;
            let end: Option<PartEnd> = self.part(&answer, "pagination")?;
            let found: Vec<T> = self.part(&answer, name)?;
            let is_paged = end.is_some();
            PartEnd { total, next_after: after } = end.unwrap_or_default();
            // A part of a list by `meta` may be short before the end of the list.
            let is_last = !is_paged || (after.is_none() && found.len() < per_page);
            list.extend(found);
            if is_last || list.len() >= limit {
                break;
            }
        }
        list.truncate(limit);
        Ok((list, total))
    }

    /// Gives every job of a filter to `seen`, part by part, so that any number of jobs takes little memory.
    ///
    /// # Errors
    /// The error of the server or of the connection, or `seen` failed.
    pub async fn each_job(
        &self,
        filters: &[(&str, String)],
        mut seen: impl FnMut(&Received<JobBody>) -> io::Result<()>,
    ) -> anyhow::Result<()> {
        let mut place = Vec::new();
        loop {
            let part = [("limit", PAGE.to_string())];
            let query = [filters, &part, &place].concat();
            let answer: RawObject = self.get(&["ojs", "v1", "jobs"], &query).await?;
            let jobs: Vec<Received<JobBody>> = self.part(&answer, "jobs")?;
            jobs.iter().try_for_each(&mut seen)?;
            let end: PartEnd = self.part(&answer, "pagination")?;
            match end.next_after {
                Some(next) => place = vec![("after", next)],
                None => return Ok(()),
            }
        }
    }

    /// Reads a document as text.
    ///
    /// # Errors
    /// The error of the server or of the connection.
    pub async fn get_text(&self, path: &[&str]) -> Result<String, Failure> {
        let request = self.request(Method::GET, path, &[]).timeout(ANSWER_TIMEOUT);
        self.send(request).await?.text().await.map_err(|error| self.unreachable(&error))
    }

    /// Reads a file.
    ///
    /// # Errors
    /// The error of the server or of the connection.
    pub async fn get_bytes(&self, path: &[&str]) -> Result<Vec<u8>, Failure> {
        let response = self.send(self.request(Method::GET, path, &[])).await?;
        let bytes = response.bytes().await.map_err(|error| self.unreachable(&error))?;
        Ok(bytes.to_vec())
    }

    /// Sends JSON.
    ///
    /// # Errors
    /// The error of the server or of the connection.
    pub async fn post<T: DeserializeOwned>(
        &self,
        path: &[&str],
        body: &impl Serialize,
    ) -> Result<T, Failure> {
        self.answer(self.request(Method::POST, path, &[]).json(body)).await
    }

    /// Sends JSON with query parameters.
    ///
    /// # Errors
    /// The error of the server or of the connection.
    pub async fn post_with<T: DeserializeOwned>(
        &self,
        path: &[&str],
        query: &[(&str, String)],
        body: &impl Serialize,
    ) -> Result<T, Failure> {
        self.answer(self.request(Method::POST, path, query).json(body)).await
    }

    /// Sends a document as text.
    ///
    /// # Errors
    /// The error of the server or of the connection.
    pub async fn post_text<T: DeserializeOwned>(
        &self,
        (path, query): (&[&str], &[(&str, String)]),
        media_type: &'static str,
        body: String,
    ) -> Result<T, Failure> {
        self.answer(self.request(Method::POST, path, query).header(CONTENT_TYPE, media_type).body(body)).await
    }

    /// Replaces a resource.
    ///
    /// # Errors
    /// The error of the server or of the connection.
    pub async fn put<T: DeserializeOwned>(&self, path: &[&str], body: &impl Serialize) -> Result<T, Failure> {
        self.answer(self.request(Method::PUT, path, &[]).json(body)).await
    }

    /// Changes a part of a resource.
    ///
    /// # Errors
    /// The error of the server or of the connection.
    pub async fn patch<T: DeserializeOwned>(
        &self,
        path: &[&str],
        body: &impl Serialize,
    ) -> Result<T, Failure> {
        self.answer(self.request(Method::PATCH, path, &[]).json(body)).await
    }

    /// Removes or cancels a resource.
    ///
    /// # Errors
    /// The error of the server or of the connection.
    pub async fn delete<T: DeserializeOwned>(&self, path: &[&str]) -> Result<T, Failure> {
        self.delete_some(path, &[]).await
    }

    /// Removes the part of a resource that the query names.
    ///
    /// # Errors
    /// The error of the server or of the connection.
    pub async fn delete_some<T: DeserializeOwned>(
        &self,
        path: &[&str],
        query: &[(&str, String)],
    ) -> Result<T, Failure> {
        self.answer(self.request(Method::DELETE, path, query)).await
    }

    /// Sends any request to a path with its query; returns the status and the body, as JSON or as one text.
    ///
    /// # Errors
    /// No server answers.
    pub async fn exchange(
        &self,
        method: Method,
        path: &str,
        body: Option<(&'static str, String)>,
    ) -> Result<(u16, Value), Failure> {
        let url = self.base.join(path);
        let url = url.map_err(|error| Failure::usage(format!("{path} is no path: {error}")))?;
        let mut request = self.http.request(method, url).timeout(ANSWER_TIMEOUT);
        if let Some((media_type, body)) = body {
            request = request.header(CONTENT_TYPE, HeaderValue::from_static(media_type)).body(body);
        }
        let response = request.send().await.map_err(|error| self.unreachable(&error))?;
        let status = response.status().as_u16();
        let body = response.text().await.map_err(|error| self.unreachable(&error))?;
        Ok((status, serde_json::from_str(&body).unwrap_or(Value::String(body))))
    }

    fn request(&self, method: Method, path: &[&str], query: &[(&str, String)]) -> RequestBuilder {
        let mut url = self.base.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(path);
        }
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        self.http.request(method, url)
    }

    /// Returns the answer; one without a body is read as `null`.
    async fn answer<T: DeserializeOwned>(&self, request: RequestBuilder) -> Result<T, Failure> {
        let response = self.send(request.timeout(ANSWER_TIMEOUT)).await?;
        let body = response.text().await.map_err(|error| self.unreachable(&error))?;
        let text = if body.trim().is_empty() { "null" } else { &body };
        serde_json::from_str(text).map_err(|error| self.unreadable(&error))
    }

    /// Returns a member of an answer; an absent one is read as `null`.
    ///
    /// # Errors
    /// The member has another form.
    pub fn part<T: DeserializeOwned>(&self, answer: &RawObject, name: &str) -> Result<T, Failure> {
        let member = answer.get(name).map_or("null", RawJson::as_str);
        serde_json::from_str(member).map_err(|error| self.unreadable(&error))
    }

    fn unreadable(&self, error: &serde_json::Error) -> Failure {
        let address = self.address();
        if error.classify() == Category::Data {
            let failure = Failure::failed(format!("the answer of {address} cannot be understood: {error}"))
                .hint("is the server of another version than this program? `turnstone --version`");
            return Failure { is_unreadable: true, ..failure };
        }
        Failure::failed(format!("{address} did not answer with JSON: {error}"))
            .hint("is this a Turnstone server? check the --url")
    }

    /// Sends a request; a response without a success status is a failure.
    async fn send(&self, request: RequestBuilder) -> Result<Response, Failure> {
        let (http, request) = request.build_split();
        let request =
            request.map_err(|error| Failure::usage(format!("the request cannot be made: {error}")))?;
        let line = format!("{} {}", request.method(), request.url().path());
        let response = http.execute(request).await.map_err(|error| self.unreachable(&error))?;
        let status = response.status().as_u16();
        self.output.detail(&format!("{line}: {status}"));
        if Exit::of_status(status) == Exit::Ok {
            return Ok(response);
        }
        let body = response.text().await.unwrap_or_default();
        Err(Failure::of_answer(status, &body))
    }

    fn unreachable(&self, error: &reqwest::Error) -> Failure {
        let mut cause: &dyn std::error::Error = error;
        while let Some(deeper) = cause.source() {
            cause = deeper;
        }
        if let Some(why) = certificate_problem(error) {
            return Failure::failed(format!("the certificate of {} is refused: {why}", self.address())).hint(
                "have this machine trust its authority (SSL_CERT_FILE names a file of them), or name the host that the \
                 certificate is for",
            );
        }
        let what = if error.is_connect() {
            format!("no server answers at {}: {cause}", self.address())
        } else if error.is_timeout() {
            format!("{} took too long to answer", self.address())
        } else {
            format!("the connection to {} broke: {cause}", self.address())
        };
        Failure::failed(what)
            .hint("start one with `turnstone dev`, or name another with --url or TURNSTONE_URL")
    }
}

/// Returns a member of an answer as it came.
#[must_use]
pub fn raw_part(mut answer: RawObject, name: &str) -> RawJson {
    answer.remove(name).unwrap_or_else(RawJson::null)
}

/// Returns true if the address is on this machine.
fn is_loopback(address: &Url) -> bool {
    let host = address.host_str().unwrap_or_default();
    let ip = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    ip.map_or(host == "localhost", |ip| ip.to_canonical().is_loopback())
}

/// Installs the cryptography provider of TLS, for every HTTP client of this process.
pub fn install_tls() {
    // A second installation keeps the first provider, which is the same one.
    let _ = rustls::crypto::ring::default_provider().install_default();
}

/// Returns the header that shows the API key, if there is one.
fn key_header(reference: Option<&SecretRef>) -> Result<HeaderMap, Failure> {
    let by_default = SecretRef::Env(KEY_VARIABLE.to_owned());
    let reference = match reference {
        Some(reference) => reference,
        None if turnstone_telemetry::environment::var_os(KEY_VARIABLE).is_some_and(|key| !key.is_empty()) => {
            &by_default
        }
        None => return Ok(HeaderMap::new()),
    };
    let refused = |why: String| {
        Failure::new(Exit::Auth, why)
            .hint("an API key is given by reference: --api-key-ref env:NAME or file:/path")
    };
    let key = reference.resolve().map_err(refused)?;
    let mut value = HeaderValue::from_str(&format!("Bearer {}", key.expose()))
        .map_err(|_| refused(format!("the API key in {reference} has characters that cannot be sent")))?;
    value.set_sensitive(true);
    Ok(HeaderMap::from_iter([(AUTHORIZATION, value)]))
}

/// Returns the answer `base` with other members.
#[cfg(test)]
pub(crate) fn filled<T: DeserializeOwned>(base: Value, members: &Value) -> T {
    let mut answer: serde_json::Map<String, Value> = serde_json::from_value(base).unwrap();
    answer.extend(members.as_object().unwrap().clone());
    serde_json::from_value(answer.into()).unwrap()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(url: &str) -> Client {
        let output = Output { quiet: true, ..Output::default() };
        Client::new(&ClientConfig { url: url.into(), api_key: None }, output).unwrap()
    }

    #[test]
    fn ids_cannot_leave_their_place_in_the_path() {
        let client = client("http://127.0.0.1:1/base/");
        let request = client
            .request(Method::GET, &["ojs", "v1", "jobs", "../x?y#z"], &[("q", "a&b".into())])
            .build()
            .unwrap();
        assert_eq!(request.url().as_str(), "http://127.0.0.1:1/base/ojs/v1/jobs/..%2Fx%3Fy%23z?q=a%26b");
    }

    #[test]
    fn this_machine_is_called_without_a_proxy() {
        for (url, here) in [
            ("http://127.0.0.1:8080", true),
            ("http://[::1]:8080", true),
            ("http://LOCALHOST/", true),
            ("http://192.168.1.2:8080", false),
            ("https://localhost.example.org", false),
        ] {
            assert_eq!(is_loopback(&Url::parse(url).unwrap()), here, "{url}");
        }
    }

    #[test]
    fn an_address_is_shown_without_its_credentials() {
        assert_eq!(client("http://me:hunter2@host:1/").address(), "http://host:1");
    }

    #[tokio::test]
    async fn a_server_that_is_not_there_is_named_with_the_next_step() {
        // A bound socket that does not listen: no other process takes the port, and a connection is refused.
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let silent = socket.local_addr().unwrap();
        let asked = client(&format!("http://{silent}"));
        let failure = asked.get::<Value>(&["ojs", "manifest"], &[]).await.unwrap_err();
        assert_eq!(failure.exit, Exit::Failed);
        assert!(failure.message.contains(&silent.to_string()), "{failure}");
        assert!(failure.hint.unwrap().contains("turnstone dev"));
    }

    #[test]
    fn an_answer_of_another_form_is_told_from_one_that_is_no_json() {
        let client = client("http://127.0.0.1:1");
        let of = |text: &str| client.unreadable(&serde_json::from_str::<PartEnd>(text).unwrap_err());
        assert!(of("<html>").hint.unwrap().contains("--url"));
        assert!(of(r#"{"total": "x"}"#).hint.unwrap().contains("version"));
    }

    #[test]
    fn the_members_of_a_list_are_found() {
        let client = client("http://127.0.0.1:1");
        let answer: RawObject = serde_json::from_str(r#"{"jobs": [1], "pagination": {"total": 2}}"#).unwrap();
        assert_eq!(client.part::<Vec<u8>>(&answer, "jobs").unwrap(), [1]);
        assert_eq!(client.part::<PartEnd>(&answer, "pagination").unwrap().total, Some(2));
        assert!(client.part::<Option<PartEnd>>(&answer, "other").unwrap().is_none());
        assert!(client.part::<Vec<u8>>(&answer, "other").is_err());
    }
}
