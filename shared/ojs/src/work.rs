//! The requests of workers in any language (OJS HTTP binding §5.4 to §5.8).

use crate::{Fields, OjsError, read};
use serde_json::{Map, Value};
use turnstone_domain::{JobError, RawJson};

/// The most jobs that one fetch returns.
const MOST_JOBS: i64 = 1000;
/// The longest name of a worker.
const MOST_CHARACTERS: usize = 255;
/// The longest reservation, in milliseconds: a hundred days.
const LONGEST_MS: i64 = 8_640_000_000;
/// A saved state has at most this many bytes (OJS durable execution §4.2).
pub const MAX_STATE_BYTES: usize = 1024 * 1024;

/// `POST /workers/fetch` and `POST /jobs/fetch`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FetchBody {
    /// In order of preference; never empty.
    pub queues: Vec<String>,
    /// At most this many jobs.
    pub count: usize,
    /// The worker, if it names itself.
    pub worker: Option<String>,
    /// How long the jobs are reserved unless they say so themselves, in milliseconds.
    pub visibility_ms: Option<i64>,
    /// The tags that the runtime offers; `None` serves every job.
    pub runtime_tags: Option<Vec<String>>,
}

impl FetchBody {
    /// Reads it.
    ///
    /// # Errors
    /// 400 for a member that is missing or wrong.
    pub fn read(body: &[u8]) -> Result<Self, OjsError> {
        let fields = Fields::read(body)?;
        let queues = fields.required("queues", read::texts)?;
        if queues.is_empty() {
            return Err(OjsError::invalid_request("queues", "must name at least one queue"));
        }
        let runtime = fields.object("runtime")?.map(Fields);
        let tags = |runtime: Fields| {
            let tags = runtime.given("tags", read::texts).map_err(|error| within("runtime.", error))?;
            Ok::<_, OjsError>(tags.unwrap_or_default())
        };
        let count = fields.integer("count", 1, i64::MAX)?.unwrap_or(1).min(MOST_JOBS);
        Ok(Self {
            queues,
            count: usize::try_from(count).unwrap_or(1),
            worker: worker(&fields)?,
            visibility_ms: visibility(&fields)?,
            runtime_tags: runtime.map(tags).transpose()?,
        })
    }
}

/// An acknowledgement.
#[derive(Clone, PartialEq, Debug)]
pub struct AckBody {
    /// The job, when the path does not name it.
    pub job: Option<String>,
    /// Any JSON; `null` when nothing was sent.
    pub result: RawJson,
    /// The worker, if it names itself.
    pub worker: Option<String>,
}

impl AckBody {
    /// Reads it.
    ///
    /// # Errors
    /// 400 for a member that is wrong.
    pub fn read(body: &[u8]) -> Result<Self, OjsError> {
        let fields = Fields::read_if_any(body)?;
        Ok(Self {
            job: fields.text("job_id")?,
            result: fields.raw("result").cloned().unwrap_or_else(RawJson::null),
            worker: worker(&fields)?,
        })
    }
}

/// A failure, or a job that is given back.
#[derive(Clone, PartialEq, Debug)]
pub struct NackBody {
    /// The job, when the path does not name it.
    pub job: Option<String>,
    /// Why it failed; `None` when it is given back.
    pub error: Option<JobError>,
    /// The worker, if it names itself.
    pub worker: Option<String>,
}

impl NackBody {
    /// Reads it.
    ///
    /// # Errors
    /// 400 for a member that is missing or wrong.
    pub fn read(body: &[u8]) -> Result<Self, OjsError> {
        let fields = Fields::read_if_any(body)?;
        let requeue = fields.flag("requeue")?.unwrap_or(false);
        let error = fields.given("error", reported)?;
        if error.is_none() && !requeue {
            let why = "is missing: say what failed, or send `\"requeue\": true` to give the job back";
            return Err(OjsError::invalid_request("error", why));
        }
        Ok(Self { job: fields.text("job_id")?, error: error.filter(|_| !requeue), worker: worker(&fields)? })
    }
}

fn reported(value: &Value) -> Result<JobError, String> {
    let error = read::object(value)?;
    let text = |name: &str| match error.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => read::text(value).map(Some).map_err(|why| format!(".{name} {why}")),
    };
    let (code, message, named) = (text("code")?, text("message")?, text("type")?);
    if code.is_none() && message.is_none() && named.is_none() {
        return Err("must have a code, a message or a type".to_owned());
    }
    let retryable = match error.get("retryable") {
        None | Some(Value::Null) => true,
        Some(Value::Bool(retryable)) => *retryable,
        Some(other) => return Err(format!(".retryable must be true or false, not {}", read::kind(other))),
    };
    let details = match error.get("details") {
        None | Some(Value::Null) => Map::new(),
        Some(details) => read::object(details).map_err(|why| format!(".details {why}"))?.clone(),
    };
    let code = code.or(named).filter(|code| !code.is_empty()).unwrap_or("handler_error");
    Ok(JobError::reported(code, message.unwrap_or_default(), retryable, named, details))
}

/// A sign of life. It is read alike at `/workers/heartbeat` and at `/workers/beat`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BeatBody {
    /// The worker.
    pub worker: String,
    /// The jobs whose reservations are to be renewed.
    pub jobs: Vec<String>,
    /// The number of jobs that it works on, if it reports it.
    pub busy: Option<i64>,
    /// True if it takes new jobs, if it reports it.
    pub takes_jobs: Option<bool>,
    /// How long the reservations last from now, in milliseconds.
    pub visibility_ms: Option<i64>,
}

impl BeatBody {
    /// Reads it: jobs may be listed in `active_jobs`, `active_job_ids` and `job_id`; a number in `active_jobs` is their
    /// count.
    ///
    /// # Errors
    /// 400 for a member that is missing or wrong.
    pub fn read(body: &[u8]) -> Result<Self, OjsError> {
        let fields = Fields::read(body)?;
        let active = fields.given("active_jobs", |value| match value {
            Value::Number(_) => Ok((Vec::new(), Some(read::integer_between(value, 0, i64::from(u32::MAX))?))),
            list => read::texts(list).map(|ids| (ids, None)),
        })?;
        let (mut jobs, counted) = active.unwrap_or_default();
        jobs.extend(fields.texts("active_job_ids")?.unwrap_or_default());
        jobs.extend(fields.text("job_id")?);
        let named = (!jobs.is_empty()).then(|| i64::try_from(jobs.len()).unwrap_or(i64::MAX));
        Ok(Self {
            worker: fields.required("worker_id", name)?,
            busy: counted.or(named),
            jobs,
            takes_jobs: fields.given("state", takes_jobs)?,
            visibility_ms: visibility(&fields)?,
        })
    }
}

/// Returns true if a worker in this state takes new jobs.
fn takes_jobs(state: &Value) -> Result<bool, String> {
    match read::text(state)? {
        "running" | "active" | "idle" | "busy" => Ok(true),
        "drain" | "draining" | "quiet" | "terminate" | "terminating" | "shutting_down" | "shutdown"
        | "stopped" => Ok(false),
        other => Err(format!("must be running, quiet, drain, shutting_down or terminate, not `{other}`")),
    }
}

/// Reads the state to be saved: `state` of `PUT /jobs/{id}/checkpoint`, or `checkpoint` of a progress report.
///
/// # Errors
/// 400 when it is missing, 413 when it is larger than [`MAX_STATE_BYTES`].
pub fn saved_state(body: &[u8]) -> Result<RawJson, OjsError> {
    let fields = Fields::read(body)?;
    let state = fields.raw("state").ok_or_else(|| OjsError::invalid_request("state", "is missing"))?;
    fits(state)?;
    Ok(state.clone())
}

fn fits(state: &RawJson) -> Result<(), OjsError> {
    if state.as_str().len() > MAX_STATE_BYTES {
        return Err(OjsError::too_large(MAX_STATE_BYTES));
    }
    Ok(())
}

/// `PUT /jobs/{id}/progress`.
#[derive(Clone, PartialEq, Debug)]
pub struct ProgressBody {
    /// Of the whole, in millionths, from 0 to 1,000,000.
    pub millionths: i64,
    /// In words.
    pub message: Option<String>,
    /// For programs.
    pub data: Option<RawJson>,
    /// A state to be saved with it.
    pub state: Option<RawJson>,
}

impl ProgressBody {
    /// Reads it. Values outside of 0 to 100 percent are clamped (OJS progress §3.2).
    ///
    /// # Errors
    /// 400 for a member that is missing or wrong, 413 for a state that is too large.
    pub fn read(body: &[u8]) -> Result<Self, OjsError> {
        let fields = Fields::read(body)?;
        let progress = fields.required("progress", |value| {
            value.as_f64().ok_or_else(|| format!("must be a number from 0 to 1, not {}", read::kind(value)))
        })?;
        let given = |name: &str| fields.0.given(name).cloned();
        let state = given("checkpoint");
        state.as_ref().map_or(Ok(()), fits)?;
        #[expect(clippy::cast_possible_truncation, reason = "it is between 0 and a million")]
        let millionths = (progress.clamp(0.0, 1.0) * 1e6).round() as i64;
        Ok(Self { millionths, message: fields.text("message")?, data: given("data"), state })
    }
}

fn worker(fields: &Fields) -> Result<Option<String>, OjsError> {
    fields.given("worker_id", name)
}

fn name(value: &Value) -> Result<String, String> {
    match read::filled_text(value)? {
        long if long.chars().count() > MOST_CHARACTERS => {
            Err(format!("must have at most {MOST_CHARACTERS} characters"))
        }
        name => Ok(name.to_owned()),
    }
}

fn visibility(fields: &Fields) -> Result<Option<i64>, OjsError> {
    fields.integer("visibility_timeout_ms", 1, LONGEST_MS)
}

/// Returns an error about a member of a member.
fn within(place: &str, error: OjsError) -> OjsError {
    let field = format!("{place}{}", error.details["field"].as_str().unwrap_or_default());
    OjsError { message: format!("{place}{}", error.message), ..error.with("field", field) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn bytes(value: &Value) -> Vec<u8> {
        value.to_string().into_bytes()
    }

    fn beat(value: &Value) -> BeatBody {
        BeatBody::read(&bytes(value)).unwrap()
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
            assert_eq!((read.jobs.as_slice(), read.busy), (jobs, busy), "{body}");
        }
        for (state, takes_jobs) in [("running", true), ("drain", false), ("quiet", false)] {
            let read = beat(&json!({"worker_id": "w", "state": state}));
            assert_eq!(read.takes_jobs, Some(takes_jobs), "{state}");
        }
    }

    #[test]
    fn wrong_bodies_name_the_field() {
        let fetch = |body: Value| FetchBody::read(&bytes(&body)).unwrap_err();
        let nack = |body: Value| NackBody::read(&bytes(&body)).unwrap_err();
        let beat = |body: Value| BeatBody::read(&bytes(&body)).unwrap_err();
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
        let error = NackBody::read(&bytes(&body)).unwrap().error.unwrap();
        assert_eq!((error.code(), error.error_type(), error.retryable), ("E1", "E1", true));
        assert_eq!((error.message.as_str(), &error.details["a"]), ("boom", &json!(1)));
        let body = json!({"requeue": true, "error": {"code": "cancelled", "retryable": false}});
        assert_eq!(NackBody::read(&bytes(&body)).unwrap().error, None);
    }

    #[test]
    fn progress_is_cut_to_the_whole() {
        for (sent, millionths) in
            [(json!(1.5), 1_000_000), (json!(-3), 0), (json!(0.25), 250_000), (json!(1), 1_000_000)]
        {
            let read = ProgressBody::read(&bytes(&json!({"progress": sent}))).unwrap();
            assert_eq!(read.millionths, millionths);
        }
    }
}
