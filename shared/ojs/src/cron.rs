//! Cron entries on the wire (OJS cron §3): requests in, entries and runs out.

use crate::fields::Fields;
use crate::request::{optional, required};
use crate::{Enqueue, EnqueueRequest, OjsError, read};
use serde::{Deserialize, Deserializer, Serialize};
use turnstone_domain::cron::{CronChange, CronEntry, CronRun, Missed, Overlap, Schedule};
use turnstone_domain::{NewJob, RawJson, RawObject, Timestamp};
use utoipa::ToSchema;

/// Members of a request that belong to the entry; in the flat form all others are the job's.
const OF_THE_ENTRY: [&str; 18] = [
    "id",
    "name",
    "expression",
    "cron",
    "timezone",
    "overlap_policy",
    "missed_policy",
    "enabled",
    "description",
    "job_template",
    "created_at",
    "updated_at",
    "next_run_at",
    "last_run_at",
    "last_job_id",
    "last_error",
    "run_count",
    "tenant_id",
];

/// A request to make or replace an entry. The job may be in `job_template` or beside the other members.
#[derive(Deserialize, ToSchema)]
#[schema(example = json!({
    "name": "nightly-report", "expression": "0 3 * * *", "timezone": "Europe/Berlin",
    "job_template": {"type": "report.build", "args": ["daily"], "options": {"queue": "reports"}},
}))]
pub struct PutCron {
    /// a-z, A-Z, 0-9, `-`, `_`, `.`, `:`.
    #[serde(deserialize_with = "named")]
    name: String,
    /// Five fields, six with seconds in front, or an alias such as @daily and @every 5m.
    #[schema(value_type = String)]
    expression: Option<String>,
    #[schema(ignore)]
    cron: Option<String>,
    /// An IANA name; UTC by default.
    timezone: Option<String>,
    /// skip (the default), allow, `cancel_previous` or enqueue.
    #[serde(default, deserialize_with = "overlap")]
    #[schema(value_type = Option<String>)]
    overlap_policy: Option<Overlap>,
    /// once (the default), all or skip.
    #[serde(default, deserialize_with = "missed")]
    #[schema(value_type = Option<String>)]
    missed_policy: Option<Missed>,
    enabled: Option<bool>,
    description: Option<String>,
    /// The request that each run enqueues.
    #[schema(value_type = Enqueue)]
    job_template: Option<RawObject>,
}

/// A request to change an entry; members that are not sent stay as they are.
#[derive(Deserialize, ToSchema)]
#[schema(example = json!({"enabled": false}))]
pub struct ChangeCron {
    #[schema(ignore)]
    name: Option<String>,
    expression: Option<String>,
    #[schema(ignore)]
    cron: Option<String>,
    timezone: Option<String>,
    #[serde(default, deserialize_with = "overlap")]
    #[schema(value_type = Option<String>)]
    overlap_policy: Option<Overlap>,
    #[serde(default, deserialize_with = "missed")]
    #[schema(value_type = Option<String>)]
    missed_policy: Option<Missed>,
    enabled: Option<bool>,
    description: Option<String>,
    #[schema(value_type = Option<Enqueue>)]
    job_template: Option<RawObject>,
}

/// Reads a request to make or replace an entry.
///
/// # Errors
/// A 4xx that names the field.
pub fn read_entry(fields: RawObject, tenant: Option<&str>, now: Timestamp) -> Result<CronEntry, OjsError> {
    let sent: PutCron = Fields(fields.clone()).typed()?;
    let template = template(fields, sent.job_template, tenant, now)?;
    let timezone = sent.timezone.unwrap_or_else(|| "UTC".to_owned());
    let expression = sent.expression.or(sent.cron);
    let expression = expression.ok_or_else(|| OjsError::invalid_request("expression", "is missing"))?;
    let schedule = schedule(&expression, &timezone)?;
    let enabled = sent.enabled.unwrap_or(true);
    let template = template.ok_or_else(|| {
        OjsError::invalid_request("job_template", "is missing; send the request that each run enqueues")
    })?;
    Ok(CronEntry {
        name: sent.name,
        tenant: tenant.map(str::to_owned),
        expression,
        timezone,
        overlap: sent.overlap_policy.unwrap_or_default(),
        missed: sent.missed_policy.unwrap_or_default(),
        enabled,
        template: template.to_raw().into_text(),
        description: sent.description,
        created_at: now,
        updated_at: now,
        next_run_at: if enabled { schedule.next_after(now, now) } else { None },
        last_run_at: None,
        last_job_id: None,
        runs: 0,
        last_error: None,
    })
}

/// Reads a request to change an entry: what is not sent stays as it is.
///
/// # Errors
/// A 4xx that names the field.
pub fn read_change(fields: RawObject, entry: &CronEntry, now: Timestamp) -> Result<CronChange, OjsError> {
    let sent: ChangeCron = Fields(fields.clone()).typed()?;
    let template = template(fields, sent.job_template, entry.tenant.as_deref(), now)?;
    if sent.name.is_some_and(|name| name != entry.name) {
        return Err(OjsError::invalid_request("name", "cannot be changed; make an entry of the other name"));
    }
    let change = CronChange {
        expression: sent.expression.or(sent.cron),
        timezone: sent.timezone,
        overlap: sent.overlap_policy,
        missed: sent.missed_policy,
        enabled: sent.enabled,
        template: template.map(|template| template.to_raw().into_text()),
        description: sent.description,
        next_run_at: None,
    };
    if change.expression.is_none() && change.timezone.is_none() && change.enabled.is_none() {
        return Ok(change);
    }
    let expression = change.expression.as_deref().unwrap_or(&entry.expression);
    let timezone = change.timezone.as_deref().unwrap_or(&entry.timezone);
    let schedule = schedule(expression, timezone)?;
    let enabled = change.enabled.unwrap_or(entry.enabled);
    let next_run_at = if enabled { schedule.next_after(now, entry.created_at) } else { None };
    Ok(CronChange { next_run_at: Some(next_run_at), ..change })
}

/// Returns the request that each run of an entry enqueues, at this time.
///
/// # Errors
/// The stored template can no longer be read.
pub fn template_of(entry: &CronEntry) -> Result<RawObject, OjsError> {
    crate::body::read_object(entry.template.as_bytes())
}

/// Marks a job as made by an entry for an occurrence.
pub fn stamp(job: &mut NewJob, entry: &CronEntry, scheduled_at: Timestamp, now: Timestamp) {
    let meta = &mut job.envelope.meta;
    meta.insert("cron_name", entry.name.as_str());
    meta.insert("cron_scheduled_at", scheduled_at.to_rfc3339());
    meta.insert("cron_triggered_at", now.to_rfc3339());
    job.terms.cron = Some(entry.name.clone());
}

/// A cron entry as clients see it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = Cron)]
pub struct CronBody {
    /// The name, as paths under `/ojs/v1/crons` take it.
    pub id: String,
    /// Unique within its tenant.
    #[schema(example = "nightly-report")]
    pub name: String,
    /// As it was sent.
    #[schema(example = "0 3 * * *")]
    pub expression: String,
    /// The same.
    pub cron: String,
    /// An IANA name.
    #[schema(example = "Europe/Berlin")]
    pub timezone: String,
    /// skip, allow, `cancel_previous` or enqueue.
    pub overlap_policy: String,
    /// once, all or skip.
    pub missed_policy: String,
    /// True if it makes jobs.
    pub enabled: bool,
    /// The type of its jobs.
    #[serde(rename = "type")]
    #[schema(value_type = String)]
    pub job_type: RawJson,
    /// The request that each run enqueues.
    #[schema(value_type = Map<String, Value>)]
    pub job_template: RawJson,
    /// In the operator's words.
    pub description: Option<String>,
    /// When it was made.
    pub created_at: String,
    /// When it was changed last.
    pub updated_at: String,
    /// The next occurrence; null while it is disabled.
    pub next_run_at: Option<String>,
    /// When it made its latest job.
    pub last_run_at: Option<String>,
    /// The latest job that it made.
    pub last_job_id: Option<String>,
    /// How many jobs it made.
    pub run_count: i64,
    /// Why the latest run made no job.
    pub last_error: Option<String>,
    /// Its tenant, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant_id: Option<String>,
}

impl From<&CronEntry> for CronBody {
    fn from(entry: &CronEntry) -> Self {
        let template = RawJson::from_text(entry.template.clone()).unwrap_or_else(|_| RawJson::null());
        let job_type = template.parse::<RawObject>().ok().and_then(|template| template.get("type").cloned());
        Self {
            id: entry.name.clone(),
            name: entry.name.clone(),
            expression: entry.expression.clone(),
            cron: entry.expression.clone(),
            timezone: entry.timezone.clone(),
            overlap_policy: entry.overlap.as_str().to_owned(),
            missed_policy: entry.missed.as_str().to_owned(),
            enabled: entry.enabled,
            job_type: job_type.unwrap_or_else(RawJson::null),
            job_template: template,
            description: entry.description.clone(),
            created_at: entry.created_at.to_rfc3339(),
            updated_at: entry.updated_at.to_rfc3339(),
            next_run_at: entry.next_run_at.map(Timestamp::to_rfc3339),
            last_run_at: entry.last_run_at.map(Timestamp::to_rfc3339),
            last_job_id: entry.last_job_id.as_ref().map(ToString::to_string),
            run_count: entry.runs,
            last_error: entry.last_error.clone(),
            tenant_id: entry.tenant.clone(),
        }
    }
}

/// One occurrence of a cron entry.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = CronRun)]
pub struct CronRunBody {
    /// The time of the occurrence.
    pub scheduled_at: String,
    /// When the scheduler processed it.
    pub at: String,
    /// triggered, skipped or failed.
    pub outcome: String,
    /// The job that was made, or the one that prevented it.
    pub job_id: Option<String>,
    /// Why no job could be made.
    pub message: Option<String>,
}

impl From<CronRun> for CronRunBody {
    fn from(run: CronRun) -> Self {
        Self {
            scheduled_at: run.scheduled_at.to_rfc3339(),
            at: run.at.to_rfc3339(),
            outcome: run.outcome.as_str().to_owned(),
            job_id: run.job_id.map(|id| id.to_string()),
            message: run.message,
        }
    }
}

fn named<'de, D: Deserializer<'de>>(member: D) -> Result<String, D::Error> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':');
    required(member, |value| {
        let name = read::filled_text(value)?;
        if name.len() <= 255 && name.chars().all(plain) {
            return Ok(name.to_owned());
        }
        let shown = read::shortened(name, 60);
        Err(format!("`{shown}` must be at most 255 characters of a-z, A-Z, 0-9, `-`, `_`, `.`, `:`"))
    })
}

fn schedule(expression: &str, timezone: &str) -> Result<Schedule, OjsError> {
    Schedule::parse(expression, timezone).map_err(|(field, why)| OjsError::invalid_request(field, why))
}

fn overlap<'de, D: Deserializer<'de>>(member: D) -> Result<Option<Overlap>, D::Error> {
    optional(member, |value| {
        let unknown = || format!("must be one of {}", Overlap::WORDS.join(", "));
        Overlap::parse(read::text(value)?).ok_or_else(unknown)
    })
}

fn missed<'de, D: Deserializer<'de>>(member: D) -> Result<Option<Missed>, D::Error> {
    optional(member, |value| {
        let unknown = || format!("must be one of {}", Missed::WORDS.join(", "));
        Missed::parse(read::text(value)?).ok_or_else(unknown)
    })
}

/// Returns the request to enqueue: `job_template`, or the members that are not the entry's own. It is checked now,
/// because no client receives the errors of a template when its time comes.
fn template(
    mut members: RawObject,
    given: Option<RawObject>,
    tenant: Option<&str>,
    now: Timestamp,
) -> Result<Option<RawObject>, OjsError> {
    let wrapped = given.is_some();
    let mut template = match given {
        Some(template) => template,
        None if members.contains("type") => {
            OF_THE_ENTRY.iter().for_each(|name| drop(members.remove(name)));
            members
        }
        None => return Ok(None),
    };
    let at = |field: &str| if wrapped { format!("job_template.{field}") } else { field.to_owned() };
    if template.contains("id") {
        let why = "must be left out: every run makes a job with an id of its own";
        return Err(OjsError::invalid_request(&at("id"), why));
    }
    template.insert_new("args", RawJson::empty_array());
    match EnqueueRequest::from_fields(template.clone(), tenant, now) {
        Ok(_) => Ok(Some(template)),
        Err(error) if wrapped => {
            let field = error.details.get("field").and_then(|field| field.as_str()).map(at);
            let error = OjsError { message: format!("job_template: {}", error.message), ..error };
            Err(match field {
                Some(field) => error.with("field", field),
                None => error,
            })
        }
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(1_767_225_600_000);

    fn read(text: &str) -> Result<CronEntry, OjsError> {
        read_entry(serde_json::from_str(text).unwrap(), None, NOW)
    }

    #[test]
    fn both_forms_mean_the_same_and_texts_stay_texts() {
        let wrapped = read(
            r#"{"name":"n","expression":"0 3 * * *","job_template":{"type":"a.b","args":[1e400],"ext_x":1}}"#,
        );
        let flat = read(r#"{"name":"n","cron":"0 3 * * *","type":"a.b","args":[1e400],"ext_x":1}"#);
        let (wrapped, flat) = (wrapped.unwrap(), flat.unwrap());
        assert_eq!(wrapped, flat);
        assert_eq!(wrapped.template, r#"{"type":"a.b","args":[1e400],"ext_x":1}"#);
        assert_eq!(
            (wrapped.overlap, wrapped.missed, wrapped.timezone.as_str()),
            (Overlap::Skip, Missed::Once, "UTC")
        );
        assert_eq!(wrapped.next_run_at, Some(NOW.plus_ms(3 * 3_600_000)));
        let shown = serde_json::to_string(&CronBody::from(&wrapped)).unwrap();
        assert!(
            shown.contains(r#""type":"a.b","job_template":{"type":"a.b","args":[1e400],"ext_x":1}"#),
            "{shown}"
        );
    }

    #[test]
    fn a_disabled_entry_has_no_next_run() {
        let entry = read(r#"{"name":"n","cron":"@daily","enabled":false,"type":"a"}"#).unwrap();
        assert_eq!((entry.next_run_at, entry.template.as_str()), (None, r#"{"type":"a","args":[]}"#));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (body, status, field) in [
            (r#"{"cron":"@daily","type":"a"}"#, 400, "name"),
            (r#"{"name":"a b","cron":"@daily","type":"a"}"#, 400, "name"),
            (r#"{"name":"n","type":"a"}"#, 400, "expression"),
            (r#"{"name":"n","cron":{"a":1},"type":"a"}"#, 400, "cron"),
            (r#"{"name":"n","cron":"99 * * * *","type":"a"}"#, 400, "expression"),
            (r#"{"name":"n","cron":"@daily","timezone":"+01:00","type":"a"}"#, 400, "timezone"),
            (r#"{"name":"n","cron":"@daily","overlap_policy":"maybe","type":"a"}"#, 400, "overlap_policy"),
            (r#"{"name":"n","cron":"@daily","missed_policy":1,"type":"a"}"#, 400, "missed_policy"),
            (r#"{"name":"n","cron":"@daily","enabled":"yes","type":"a"}"#, 400, "enabled"),
            (r#"{"name":"n","cron":"@daily"}"#, 400, "job_template"),
            (r#"{"name":"n","cron":"@daily","job_template":[]}"#, 400, "job_template"),
            (r#"{"name":"n","cron":"@daily","job_template":{"type":"A"}}"#, 400, "job_template.type"),
            (r#"{"name":"n","cron":"@daily","job_template":{"type":"a","id":"x"}}"#, 400, "job_template.id"),
            (
                r#"{"name":"n","cron":"@daily","job_template":{"type":"a","options":{"retry":{"max_attempts":-1}}}}"#,
                422,
                "job_template.options.retry.max_attempts",
            ),
        ] {
            let error = read(body).unwrap_err();
            assert_eq!(
                (error.status, error.details["field"].as_str()),
                (status, Some(field)),
                "{body}: {error}"
            );
        }
    }

    #[test]
    fn a_change_moves_the_next_run_only_when_it_has_to() {
        let entry = read(r#"{"name":"n","cron":"@daily","type":"a"}"#).unwrap();
        let change =
            |text: &str| read_change(serde_json::from_str(text).unwrap(), &entry, NOW.plus_ms(1)).unwrap();
        assert_eq!(change(r#"{"description":"d"}"#).next_run_at, None);
        assert_eq!(change(r#"{"enabled":false}"#).next_run_at, Some(None));
        assert_eq!(change(r#"{"cron":"@hourly"}"#).next_run_at, Some(Some(NOW.plus_ms(3_600_000))));
        let wrong = read_change(serde_json::from_str(r#"{"name":"m"}"#).unwrap(), &entry, NOW);
        assert_eq!(wrong.unwrap_err().status, 400);
    }
}
