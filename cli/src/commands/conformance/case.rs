//! A case: requests, one after another, with what their answers must hold.

use crate::client::Client;
use crate::failure::Failure;
use reqwest::Method;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use turnstone_domain::Ids as _;
use turnstone_domain::ids::SystemIds;

/// How long an answer may take to become as expected.
const PATIENCE: Duration = Duration::from_secs(30);
/// The pause between two looks.
const PAUSE: Duration = Duration::from_millis(100);

/// A case.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// The fact that it shows.
    pub name: String,
    /// The rows or sections of the specification.
    pub rows: Vec<String>,
    step: Vec<CaseStep>,
}

/// A request, and what its answer must hold. `${name}` is replaced by a saved value, `${run}` and `${uuid}` by
/// values of this run of the case.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CaseStep {
    /// Method and path.
    send: String,
    /// A body in JSON.
    #[serde(default)]
    body: Option<String>,
    /// A body in YAML.
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    status: Option<u16>,
    #[serde(default)]
    statuses: Vec<u16>,
    /// Values by JSON pointers; the request is repeated until they are there.
    #[serde(default)]
    until: BTreeMap<String, Value>,
    /// Values by JSON pointers.
    #[serde(default)]
    expect: BTreeMap<String, Value>,
    /// Parts of texts by JSON pointers.
    #[serde(default)]
    contains: BTreeMap<String, String>,
    /// JSON pointers to something.
    #[serde(default)]
    present: Vec<String>,
    /// JSON pointers to nothing.
    #[serde(default)]
    absent: Vec<String>,
    /// Names for values at JSON pointers.
    #[serde(default)]
    save: BTreeMap<String, String>,
}

/// The outcome of a case: how long it took, and why it failed.
#[derive(Clone, Debug)]
pub struct CaseOutcome {
    /// The time that it took.
    pub took: Duration,
    /// The reason, if it failed.
    pub failed: Option<String>,
}

impl Case {
    /// Reads the cases of a file.
    ///
    /// # Errors
    /// The file is none of cases.
    pub fn read(text: &str) -> Result<Vec<Self>, Failure> {
        #[derive(Deserialize)]
        struct File {
            case: Vec<Case>,
        }
        let read: Result<File, _> = toml::from_str(text);
        read.map(|file| file.case)
            .map_err(|error| Failure::failed(format!("the cases cannot be read: {error}")))
    }

    /// Runs the case.
    ///
    /// # Errors
    /// No server answers.
    pub async fn run(&self, client: &Client) -> Result<CaseOutcome, Failure> {
        let (began, id) = (Instant::now(), SystemIds.next());
        let short: String = id.chars().filter(char::is_ascii_alphanumeric).rev().take(10).collect();
        let mut known = BTreeMap::from([("run".to_owned(), short), ("uuid".to_owned(), id)]);
        let mut failed = None;
        for (at, step) in self.step.iter().enumerate() {
            if let Err(why) = step.run(client, &mut known).await? {
                failed = Some(format!("step {}, {}: {why}", at + 1, filled(&step.send, &known)));
                break;
            }
        }
        Ok(CaseOutcome { took: began.elapsed(), failed })
    }
}

impl CaseStep {
    async fn run(
        &self,
        client: &Client,
        known: &mut BTreeMap<String, String>,
    ) -> Result<Result<(), String>, Failure> {
        let began = Instant::now();
        loop {
            let send = filled(&self.send, known);
            let (method, path) = send.split_once(' ').unwrap_or(("GET", &send));
            let method = Method::from_bytes(method.as_bytes()).unwrap_or(Method::GET);
            let body = match (&self.body, &self.text) {
                (Some(json), _) => Some(("application/json", filled(json, known))),
                (None, Some(yaml)) => Some(("application/yaml", filled(yaml, known))),
                (None, None) => None,
            };
            let (status, answer) = client.exchange(method, path, body).await?;
            if let Some((at, wanted)) = wrong(&self.until, &answer, known) {
                if began.elapsed() < PATIENCE {
                    tokio::time::sleep(PAUSE).await;
                    continue;
                }
                return Ok(Err(format!("{at} did not become {wanted}: {answer}")));
            }
            let checked = self.check(status, &answer, known);
            for (name, at) in &self.save {
                let value = answer
                    .pointer(at)
                    .map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned));
                known.insert(name.clone(), value.unwrap_or_default());
            }
            return Ok(checked);
        }
    }

    fn check(&self, status: u16, answer: &Value, known: &BTreeMap<String, String>) -> Result<(), String> {
        let wanted: Vec<u16> = self.status.into_iter().chain(self.statuses.iter().copied()).collect();
        if !wanted.is_empty() && !wanted.contains(&status) {
            return Err(format!("status {status} instead of {wanted:?}: {answer}"));
        }
        if let Some((at, wanted)) = wrong(&self.expect, answer, known) {
            return Err(format!("{at} is not {wanted}: {answer}"));
        }
        for (at, part) in &self.contains {
            let found = answer
                .pointer(at)
                .map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned));
            if !found.is_some_and(|text| text.contains(&filled(part, known))) {
                return Err(format!("{at} does not contain `{part}`: {answer}"));
            }
        }
        if let Some(at) = self.present.iter().find(|at| answer.pointer(at).is_none_or(Value::is_null)) {
            return Err(format!("{at} is missing: {answer}"));
        }
        match self.absent.iter().find(|at| answer.pointer(at).is_some()) {
            Some(at) => Err(format!("{at} is there: {answer}")),
            None => Ok(()),
        }
    }
}

/// Replaces `${name}` by known values.
fn filled(text: &str, known: &BTreeMap<String, String>) -> String {
    known.iter().fold(text.to_owned(), |text, (name, value)| text.replace(&format!("${{{name}}}"), value))
}

/// The first value that an answer does not have.
fn wrong<'a>(
    all: &'a BTreeMap<String, Value>,
    answer: &Value,
    known: &BTreeMap<String, String>,
) -> Option<(&'a String, &'a Value)> {
    all.iter().find(|(at, wanted)| answer.pointer(at) != Some(&with(wanted, known)))
}

fn with(value: &Value, known: &BTreeMap<String, String>) -> Value {
    value.as_str().map_or_else(|| value.clone(), |text| filled(text, known).into())
}
