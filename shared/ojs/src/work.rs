//! The requests of workers in any language (OJS HTTP binding §5.4 to §5.8).

use crate::request::{self, between, optional, required, texts};
use crate::{Fields, OjsError, read};
use serde::de::{Error as _, IgnoredAny};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use turnstone_domain::{JobError, RawJson, RawObject};
use utoipa::ToSchema;

/// The most jobs that one fetch returns.
const MOST_JOBS: usize = 1000;
/// The longest name of a worker.
const MOST_CHARACTERS: usize = 255;
/// The longest lease token.
const TOKEN_CHARACTERS: usize = 255;
/// The member of a fetched job, and of reports about it, with the token of its lease.
pub const LEASE_TOKEN: &str = "ext_lease_token";
/// The longest reservation, in milliseconds: a hundred days.
const LONGEST_MS: i64 = 8_640_000_000;
/// A saved state has at most this many bytes (OJS durable execution §4.2).
pub const MAX_STATE_BYTES: usize = 1024 * 1024;

/// The jobs that a worker requests.
#[derive(Clone, PartialEq, Debug, Deserialize, ToSchema)]
#[schema(as = FetchRequest, example = json!({"queues": ["mail", "default"], "count": 5, "worker_id": "mailer-1"}))]
pub struct FetchBody {
    /// In order of preference; at least one.
    #[serde(deserialize_with = "queues")]
    pub queues: Vec<String>,
    /// At most this many jobs; 1 when it is left out, never more than 1000.
    #[serde(default, deserialize_with = "between::<_, 1, { i64::MAX }>")]
    #[schema(value_type = Option<u32>)]
    count: Option<i64>,
    /// The worker, if it names itself.
    #[serde(default, deserialize_with = "worker")]
    pub worker_id: Option<String>,
    /// How long the jobs are reserved unless they say so themselves.
    #[serde(default, deserialize_with = "between::<_, 1, LONGEST_MS>")]
    #[schema(value_type = Option<u64>)]
    pub visibility_timeout_ms: Option<i64>,
    /// Without it, the worker serves every job.
    pub runtime: Option<FetchRuntime>,
}

/// The tags that a worker's runtime offers: it gets only jobs that need no others.
#[derive(Clone, PartialEq, Debug, Deserialize, ToSchema)]
pub struct FetchRuntime {
    #[schema(value_type = Option<String>)]
    name: Option<IgnoredAny>,
    #[schema(value_type = Option<String>)]
    version: Option<IgnoredAny>,
    /// None when it is left out.
    #[serde(default, deserialize_with = "texts")]
    pub tags: Option<Vec<String>>,
}

impl FetchBody {
    /// Returns the most jobs that are given.
    #[must_use]
    pub fn most(&self) -> usize {
        self.count.map_or(1, |count| usize::try_from(count).unwrap_or(MOST_JOBS).min(MOST_JOBS))
    }
}

/// The result of a job.
#[derive(Clone, PartialEq, Debug, Deserialize, ToSchema)]
#[schema(as = AckRequest, example = json!({"job_id": "0190a7b2-0000-7000-8000-000000000001", "result": {"sent": true}}))]
pub struct AckBody {
    /// Needed where the path does not name the job.
    pub job_id: Option<String>,
    /// Any JSON.
    #[schema(value_type = Option<Value>)]
    pub result: Option<RawJson>,
    /// Has to be the worker that fetched the job, when it is sent.
    #[serde(default, deserialize_with = "worker")]
    pub worker_id: Option<String>,
    /// The token of the lease, as the job was fetched with it. With another one the answer is 409. Or the header
    /// X-OJS-Lease-Token.
    #[serde(default, deserialize_with = "token")]
    pub ext_lease_token: Option<String>,
}

/// A job failed, or is given back.
#[derive(Clone, PartialEq, Debug, Deserialize, ToSchema)]
#[schema(as = NackRequest, example = json!({"job_id": "0190a7b2-0000-7000-8000-000000000001",
    "error": {"code": "smtp_error", "message": "The relay refused the message.", "retryable": true}}))]
pub struct NackBody {
    /// Needed where the path does not name the job.
    pub job_id: Option<String>,
    /// Needed unless the job is given back.
    #[serde(default, deserialize_with = "report")]
    error: Option<FailureReport>,
    /// Gives the job back at once, as if it had not been fetched.
    requeue: Option<bool>,
    /// Has to be the worker that fetched the job, when it is sent.
    #[serde(default, deserialize_with = "worker")]
    pub worker_id: Option<String>,
    /// The token of the lease, as the job was fetched with it. With another one the answer is 409. Or the header
    /// X-OJS-Lease-Token.
    #[serde(default, deserialize_with = "token")]
    pub ext_lease_token: Option<String>,
}

/// Why it failed. One of code, message and type has to be there.
#[derive(Clone, PartialEq, Debug, Deserialize, ToSchema)]
pub struct FailureReport {
    code: Option<String>,
    message: Option<String>,
    /// The class of the error, which `non_retryable_errors` may list.
    #[serde(rename = "type")]
    error_type: Option<String>,
    /// `false` ends the job regardless of its retry policy.
    retryable: Option<bool>,
    details: Option<Map<String, Value>>,
}

/// Reads a report; an error in it is one of the whole report.
fn report<'de, D: Deserializer<'de>>(member: D) -> Result<Option<FailureReport>, D::Error> {
    let Some(sent) = Option::<RawObject>::deserialize(member)? else { return Ok(None) };
    Fields(sent).typed().map(Some).map_err(|error| D::Error::custom(format!(".{}", error.message)))
}

impl NackBody {
    /// Returns why the job failed; `None` when it is given back.
    ///
    /// # Errors
    /// 400 when nothing is said about the failure.
    pub fn failure(self) -> Result<Option<JobError>, OjsError> {
        let wrong = |why: &str| Err(OjsError::invalid_request("error", why));
        let back = self.requeue == Some(true);
        let FailureReport { code, message, error_type, retryable, details } = match self.error {
            Some(error) => error,
            None if back => return Ok(None),
            None => {
                return wrong(
                    "is missing: say what failed, or send `\"requeue\": true` to give the job back",
                );
            }
        };
        if code.is_none() && message.is_none() && error_type.is_none() {
            return wrong("must have a code, a message or a type");
        }
        let code = code.as_deref().or(error_type.as_deref()).filter(|code| !code.is_empty());
        let (code, message) = (code.unwrap_or("handler_error"), message.unwrap_or_default());
        let (retryable, details) = (retryable.unwrap_or(true), details.unwrap_or_default());
        let error = JobError::reported(code, &message, retryable, error_type.as_deref(), details);
        Ok(Some(error).filter(|_| !back))
    }
}

/// A heartbeat. Named jobs are reserved anew.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize, ToSchema)]
#[schema(as = BeatRequest, example = json!({"worker_id": "mailer-1", "active_jobs": ["0190a7b2-0000-7000-8000-000000000001"]}))]
pub struct BeatBody {
    /// The worker.
    #[serde(deserialize_with = "name")]
    pub worker_id: String,
    /// Ids of jobs, or their number.
    #[serde(default, deserialize_with = "active")]
    #[schema(value_type = Option<Value>)]
    active_jobs: Option<ActiveJobs>,
    #[serde(default, deserialize_with = "texts")]
    active_job_ids: Option<Vec<String>>,
    job_id: Option<String>,
    /// How long the reservations last from now.
    #[serde(default, deserialize_with = "between::<_, 1, LONGEST_MS>")]
    #[schema(value_type = Option<u64>)]
    pub visibility_timeout_ms: Option<i64>,
    /// running; or quiet, drain, draining, shutting_down, terminate, after which it gets no more jobs.
    #[serde(rename = "state", default, deserialize_with = "takes_jobs")]
    #[schema(value_type = Option<String>, example = "running")]
    pub takes_jobs: Option<bool>,
    /// The tokens of leases by the ids of their jobs, as they were fetched with them. When one is the token of another lease,
    /// the answer is 409, and no reservation is renewed.
    #[serde(default, deserialize_with = "tokens")]
    #[schema(value_type = Option<BTreeMap<String, String>>)]
    ext_lease_tokens: Option<BTreeMap<String, String>>,
    /// The token of a beat that names one job. Or the header X-OJS-Lease-Token.
    #[serde(default, deserialize_with = "token")]
    pub ext_lease_token: Option<String>,
}

/// The jobs of a worker, as one of the spellings has them.
#[derive(Clone, PartialEq, Eq, Debug)]
enum ActiveJobs {
    Named(Vec<String>),
    Counted(i64),
}

impl BeatBody {
    /// Returns the jobs whose reservations are to be renewed, and the number of jobs that it works on, if it reports it.
    #[must_use]
    pub fn jobs(&self) -> (Vec<String>, Option<i64>) {
        let (listed, counted) = match &self.active_jobs {
            Some(ActiveJobs::Named(jobs)) => (jobs.as_slice(), None),
            Some(ActiveJobs::Counted(number)) => (&[][..], Some(*number)),
            None => (&[][..], None),
        };
        let further = self.active_job_ids.iter().flatten().chain(&self.job_id);
        let mut jobs: Vec<String> = listed.iter().chain(further).cloned().collect();
        let with_token = self.ext_lease_tokens.iter().flat_map(BTreeMap::keys);
        let unnamed: Vec<String> = with_token.filter(|id| !jobs.contains(id)).cloned().collect();
        jobs.extend(unnamed);
        let named = (!jobs.is_empty()).then(|| i64::try_from(jobs.len()).unwrap_or(i64::MAX));
        (jobs, counted.or(named))
    }

    /// Returns the tokens by the ids of their jobs. `token` is that of the one job of the beat.
    ///
    /// # Errors
    /// 400 when there is such a token and the beat does not name exactly one job.
    pub fn tokens(&self, token: Option<String>) -> Result<BTreeMap<String, String>, OjsError> {
        let mut tokens = self.ext_lease_tokens.clone().unwrap_or_default();
        if let Some(token) = token {
            let (jobs, _) = self.jobs();
            let [job] = jobs.as_slice() else {
                let why =
                    "is the token of one job: name one, or send the tokens of several in ext_lease_tokens";
                return Err(OjsError::invalid_request(LEASE_TOKEN, why));
            };
            if tokens.insert(job.clone(), token.clone()).is_some_and(|other| other != token) {
                return Err(OjsError::invalid_request(
                    LEASE_TOKEN,
                    "differs from the one in ext_lease_tokens",
                ));
            }
        }
        Ok(tokens)
    }
}

/// Returns the token of a request: that of its body, or of its header.
///
/// # Errors
/// 400 when both are there and differ.
pub fn one_token(header: Option<String>, body: Option<String>) -> Result<Option<String>, OjsError> {
    match (header, body) {
        (Some(header), Some(body)) if header != body => {
            Err(OjsError::invalid_request(LEASE_TOKEN, "differs from the header X-OJS-Lease-Token"))
        }
        (header, body) => Ok(header.or(body)),
    }
}

fn tokens<'de, D: Deserializer<'de>>(member: D) -> Result<Option<BTreeMap<String, String>>, D::Error> {
    optional(member, |value| {
        let Value::Object(tokens) = value else {
            return Err(format!("must be an object of tokens by the ids of jobs, not {}", read::kind(value)));
        };
        let read = |(id, token)| match lease_token(token) {
            Ok(token) => Ok((String::clone(id), token)),
            Err(why) => Err(format!("of `{}` {why}", read::shortened(id, 60))),
        };
        tokens.iter().map(read).collect()
    })
}

fn token<'de, D: Deserializer<'de>>(member: D) -> Result<Option<String>, D::Error> {
    optional(member, lease_token)
}

fn lease_token(value: &Value) -> Result<String, String> {
    match read::filled_text(value)? {
        token if is_lease_token(token) => Ok(token.to_owned()),
        _ => Err(format!("must be a lease token: 1 to {TOKEN_CHARACTERS} visible ASCII characters")),
    }
}

/// Returns true if a text may be a lease token.
#[must_use]
pub fn is_lease_token(text: &str) -> bool {
    (1..=TOKEN_CHARACTERS).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
}

fn active<'de, D: Deserializer<'de>>(member: D) -> Result<Option<ActiveJobs>, D::Error> {
    optional(member, |value| match value {
        Value::Number(_) => read::integer_between(value, 0, i64::from(u32::MAX)).map(ActiveJobs::Counted),
        list => read::texts(list).map(ActiveJobs::Named),
    })
}

/// Reads true if a worker in this state takes new jobs.
fn takes_jobs<'de, D: Deserializer<'de>>(member: D) -> Result<Option<bool>, D::Error> {
    optional(member, |state| match read::text(state)? {
        "running" | "active" | "idle" | "busy" => Ok(true),
        "drain" | "draining" | "quiet" | "terminate" | "terminating" | "shutting_down" | "shutdown"
        | "stopped" => Ok(false),
        other => Err(format!("must be running, quiet, drain, shutting_down or terminate, not `{other}`")),
    })
}

/// A state to be kept for the next attempt.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize, ToSchema)]
#[schema(as = SaveState, example = json!({"state": {"page": 17}}))]
pub struct StateBody {
    /// Any JSON, at most 1 MiB.
    #[schema(value_type = Value)]
    pub state: RawJson,
    /// The token of the lease, as the job was fetched with it. With another one the answer is 409. Or the header
    /// X-OJS-Lease-Token.
    #[serde(default, deserialize_with = "token")]
    pub ext_lease_token: Option<String>,
}

/// Reads the state to be saved by `PUT /jobs/{id}/checkpoint`, with the lease token.
///
/// # Errors
/// 400 when it is missing, 413 when it is larger than [`MAX_STATE_BYTES`].
pub fn saved_state(body: &[u8]) -> Result<StateBody, OjsError> {
    let body: StateBody = request::read(body)?;
    fits(&body.state)?;
    Ok(body)
}

fn fits(state: &RawJson) -> Result<(), OjsError> {
    if state.as_str().len() > MAX_STATE_BYTES {
        return Err(OjsError::too_large(MAX_STATE_BYTES));
    }
    Ok(())
}

/// The progress of a job.
#[derive(Clone, PartialEq, Debug, Deserialize, ToSchema)]
#[schema(as = NewProgress, example = json!({"progress": 0.5, "message": "half of the pages"}))]
pub struct ProgressBody {
    /// From 0 to 1; other values are clamped.
    #[serde(deserialize_with = "part")]
    progress: f64,
    /// In words.
    pub message: Option<String>,
    /// Any JSON.
    #[schema(value_type = Option<Value>)]
    pub data: Option<RawJson>,
    /// A state to be saved with it.
    #[schema(value_type = Option<Value>)]
    pub checkpoint: Option<RawJson>,
    /// The token of the lease, as the job was fetched with it. With another one the answer is 409. Or the header
    /// X-OJS-Lease-Token.
    #[serde(default, deserialize_with = "token")]
    pub ext_lease_token: Option<String>,
}

impl ProgressBody {
    /// Reads it.
    ///
    /// # Errors
    /// 400 for a member that is missing or wrong, 413 for a state that is too large.
    pub fn read(body: &[u8]) -> Result<Self, OjsError> {
        let read: Self = request::read(body)?;
        read.checkpoint.as_ref().map_or(Ok(()), fits)?;
        Ok(read)
    }

    /// Returns the progress in millionths. Values outside of 0 to 100 percent are clamped (OJS progress §3.2).
    #[must_use]
    pub fn millionths(&self) -> i64 {
        #[expect(clippy::cast_possible_truncation, reason = "it is between 0 and a million")]
        let millionths = (self.progress.clamp(0.0, 1.0) * 1e6).round() as i64;
        millionths
    }
}

fn part<'de, D: Deserializer<'de>>(member: D) -> Result<f64, D::Error> {
    let wrong = |value: &Value| format!("must be a number from 0 to 1, not {}", read::kind(value));
    required(member, |value| value.as_f64().ok_or_else(|| wrong(value)))
}

fn queues<'de, D: Deserializer<'de>>(member: D) -> Result<Vec<String>, D::Error> {
    required(member, |value| match read::texts(value)? {
        none if none.is_empty() => Err("must name at least one queue".to_owned()),
        queues => Ok(queues),
    })
}

fn name<'de, D: Deserializer<'de>>(member: D) -> Result<String, D::Error> {
    required(member, worker_name)
}

fn worker<'de, D: Deserializer<'de>>(member: D) -> Result<Option<String>, D::Error> {
    optional(member, worker_name)
}

fn worker_name(value: &Value) -> Result<String, String> {
    match read::filled_text(value)? {
        long if long.chars().count() > MOST_CHARACTERS => {
            Err(format!("must have at most {MOST_CHARACTERS} characters"))
        }
        name => Ok(name.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn bytes(value: &Value) -> Vec<u8> {
        value.to_string().into_bytes()
    }

    fn beat(value: &Value) -> BeatBody {
        request::read(&bytes(value)).unwrap()
    }

    #[test]
    fn a_beat_may_be_written_in_every_spelling() {
        let ids = vec!["a".to_owned(), "b".to_owned()];
        for (body, jobs, busy) in [
            (json!({"worker_id": "w", "active_jobs": ["a", "b"]}), &ids[..], Some(2)),
            (json!({"worker_id": "w", "active_jobs": 7, "active_job_ids": ["a", "b"]}), &ids, Some(7)),
            (json!({"worker_id": "w", "job_id": "a"}), &ids[..1], Some(1)),
            (json!({"worker_id": "w", "active_jobs": 0}), &[], Some(0)),
            (json!({"worker_id": "w"}), &[], None),
        ] {
            let read = beat(&body);
            assert_eq!(read.jobs(), (jobs.to_vec(), busy), "{body}");
        }
        for (state, takes_jobs) in [("running", true), ("drain", false), ("quiet", false)] {
            let read = beat(&json!({"worker_id": "w", "state": state}));
            assert_eq!(read.takes_jobs, Some(takes_jobs), "{state}");
        }
    }

    #[test]
    fn wrong_bodies_name_the_field() {
        let fetch = |body: Value| request::read::<FetchBody>(&bytes(&body)).unwrap_err();
        let nack = |body: Value| request::read(&bytes(&body)).and_then(NackBody::failure).unwrap_err();
        let beat = |body: Value| request::read::<BeatBody>(&bytes(&body)).unwrap_err();
        let progress = |body: Value| ProgressBody::read(&bytes(&body)).unwrap_err();
        for (error, field) in [
            (fetch(json!({})), "queues"),
            (fetch(json!({"queues": []})), "queues"),
            (fetch(json!({"queues": ["q"], "count": 0})), "count"),
            (fetch(json!({"queues": ["q"], "worker_id": ""})), "worker_id"),
            (fetch(json!({"queues": ["q"], "visibility_timeout_ms": 0})), "visibility_timeout_ms"),
            (fetch(json!({"queues": ["q"], "runtime": {"tags": [1]}})), "runtime.tags"),
            (nack(json!({})), "error"),
            (nack(json!({"error": {}})), "error"),
            (nack(json!({"error": {"code": "e", "retryable": "no"}})), "error"),
            (beat(json!({"worker_id": "w", "state": "asleep"})), "state"),
            (beat(json!({"active_jobs": []})), "worker_id"),
            (progress(json!({"message": "half"})), "progress"),
            (progress(json!({"progress": "half"})), "progress"),
        ] {
            assert_eq!((error.status, error.details["field"].as_str()), (400, Some(field)), "{error}");
        }
        let large = format!("{{\"state\": \"{}\"}}", "x".repeat(MAX_STATE_BYTES));
        assert_eq!(saved_state(large.as_bytes()).unwrap_err().status, 413);
    }

    #[test]
    fn a_failure_keeps_its_words_and_a_requeue_needs_none() {
        let body = json!({"job_id": "j", "error": {"code": "E1", "message": "boom", "details": {"a": 1}}});
        let failure = |body: &Value| request::read(&bytes(body)).and_then(NackBody::failure);
        let error = failure(&body).unwrap().unwrap();
        assert_eq!((error.code(), error.error_type(), error.retryable), ("E1", "E1", true));
        assert_eq!((error.message.as_str(), &error.details["a"]), ("boom", &json!(1)));
        let body = json!({"requeue": true, "error": {"code": "cancelled", "retryable": false}});
        assert_eq!(failure(&body), Ok(None));
    }

    #[test]
    fn progress_is_cut_to_the_whole() {
        for (sent, millionths) in
            [(json!(1.5), 1_000_000), (json!(-3), 0), (json!(0.25), 250_000), (json!(1), 1_000_000)]
        {
            let read = ProgressBody::read(&bytes(&json!({"progress": sent}))).unwrap();
            assert_eq!(read.millionths(), millionths);
        }
    }
}
