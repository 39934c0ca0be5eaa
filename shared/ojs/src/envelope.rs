//! The enqueue request (OJS core §3, OJS HTTP binding §5.1): from a body to a job that can be stored.

use crate::options::{ALSO_AT_THE_TOP, JobOptions, duration};
use crate::{Fields, OjsError, agent_fields, names, read, speaks, tenant};
use serde_json::Value;
use turnstone_domain::agent::{AgentFields, ToolChoice};
use turnstone_domain::engagement::{NewEngagement, User};
use turnstone_domain::ids::is_uuid_v7;
use turnstone_domain::job::Envelope;
use turnstone_domain::{AgentDefinition, EngagementId, Ids, JobId, NewJob, RawJson, RawObject, Timestamp};
use utoipa::ToSchema;

/// Top-level fields that only the server writes; a client's values in them are ignored (OJS core §3.3).
const SYSTEM_MANAGED: [&str; 21] = [
    "specversion",
    "state",
    "attempt",
    "max_attempts",
    "created_at",
    "enqueued_at",
    "started_at",
    "completed_at",
    "cancelled_at",
    "discarded_at",
    "activated_at",
    "worker_id",
    "result",
    "error",
    "errors",
    "retry_delay_ms",
    "next_retry_at",
    "next_attempt_at",
    "parent_results",
    "progress",
    "checkpoint",
];

/// A job to be enqueued. Members that are not listed are kept and returned; `ext_agent_*` make it an agent job.
#[derive(ToSchema)]
#[schema(example = json!({"type": "email.send", "args": ["ada@example.com", "welcome"], "options": {"queue": "mail"}}))]
pub struct Enqueue {
    /// Dot-separated parts of a-z, 0-9, `_`, `-`.
    #[schema(rename = "type", value_type = String)]
    job_type: Option<RawJson>,
    #[schema(value_type = Vec<Value>)]
    args: Option<RawJson>,
    /// UUIDv7; made by the server when it is left out.
    #[schema(value_type = Option<String>)]
    id: Option<RawJson>,
    #[schema(value_type = Option<Map<String, Value>>)]
    meta: Option<RawJson>,
    #[schema(value_type = Option<Map<String, Value>>)]
    options: Option<RawJson>,
}

impl Enqueue {
    /// Takes the members out of a body.
    fn taken_from(body: &mut RawObject) -> Self {
        let mut take = |name: &str| body.remove(name);
        Self {
            job_type: take("type"),
            args: take("args"),
            id: take("id"),
            meta: take("meta"),
            options: take("options"),
        }
    }
}

/// A checked request; only the agent it may name has not been looked up yet.
#[derive(Clone, PartialEq, Debug)]
pub struct EnqueueRequest {
    id: Option<JobId>,
    job_type: String,
    options: JobOptions,
    envelope: Envelope,
    agent: Option<AgentRequest>,
    received_at: Timestamp,
}

#[derive(Clone, PartialEq, Debug)]
struct AgentRequest {
    name: Option<String>,
    fields: AgentFields,
    user: User,
}

impl EnqueueRequest {
    /// Checks the members of a body, of a member of a batch, or of a template. `tenant` is the one of the request's
    /// header; `now` is the time of the request: relative times count from it.
    ///
    /// # Errors
    /// A 4xx that names the field; nothing may be stored then.
    pub fn from_fields(mut top: RawObject, tenant: Option<&str>, now: Timestamp) -> Result<Self, OjsError> {
        check_version(&top)?;
        let sent = Enqueue::taken_from(&mut top);
        let (job_type, version) = job_type(sent.job_type)?;
        let args = args(sent.args)?;
        let id = sent.id.map(|id| job_id(&id)).transpose()?;
        let mut options = object(sent.options, "options")?;
        let mut meta = object(sent.meta, "meta")?;
        for name in SYSTEM_MANAGED.iter().chain(&agent_fields::SYSTEM_MANAGED) {
            top.remove(name);
        }
        let mut twice = RawObject::default();
        for name in ALSO_AT_THE_TOP {
            let Some(value) = top.remove(name) else { continue };
            match options.contains(name) {
                true => twice.insert(name, value),
                false => options.insert_new(name, value),
            }
        }
        if !twice.is_empty() {
            // The option takes precedence, and the member has to be right all the same.
            JobOptions::read(&twice, now)?;
        }
        // The member of that name takes precedence (OJS job versioning §5.3).
        if let Some(version) = version.filter(|_| top.given("version").is_none()) {
            top.insert("version", version);
        }
        if let Some(timeout) = top.given("timeout") {
            let wrong = |why: String| OjsError::invalid_request("timeout", why);
            options.insert_new(
                "timeout_ms",
                read::value(timeout).and_then(|value| duration(&value)).map_err(wrong)?,
            );
        }
        if let Some(metadata) = options.get("metadata").filter(|value| value.is_object()) {
            let metadata: RawObject = metadata.parse().unwrap_or_default();
            meta.extend_new(metadata);
        }
        let agent = agent_request(&top, &meta)?;
        let mut requested = JobOptions::read(&options, now)?;
        requested.terms.works_for = agent_fields::works_for(&top);
        if let Some(policy) = requested.unique.take() {
            requested.terms.unique = Some(policy.of_job(&job_type, &requested.queue, &args, &meta)?);
        }
        requested.terms.runtime_tags = runtime_tags(&meta)?;
        if let Some(tenant) = tenant::tenant(tenant, &top, &meta)? {
            // Also in the place of a `null`: workers know the tenant by this member.
            meta.insert(tenant::META_MEMBER, tenant.as_str());
            requested.terms.tenant = Some(tenant);
        }
        Ok(Self {
            id,
            job_type,
            options: requested,
            envelope: Envelope { args, meta, options, extra: top },
            agent,
            received_at: now,
        })
    }

    /// Returns the registered agent that `meta.agent` names; look it up and pass it to [`Self::into_new_job`].
    #[must_use]
    pub fn agent_name(&self) -> Option<&str> {
        self.agent.as_ref().and_then(|agent| agent.name.as_deref())
    }

    /// Returns the tenant of the job.
    #[must_use]
    pub fn tenant(&self) -> Option<&str> {
        self.options.terms.tenant.as_deref()
    }

    /// Makes the job. `registered` is the agent of [`Self::agent_name`], `None` when there is none of that name.
    ///
    /// # Errors
    /// - 400 `AGENT_INVALID_PARAMETER` when the named agent is not registered.
    /// - 422 `AGENT_TOOL_NOT_FOUND` when the job asks for a tool that the registered agent does not have.
    /// - 422 `AGENT_MAX_DELEGATION_DEPTH` when it claims to be deeper than the agent allows.
    pub fn into_new_job(
        self,
        registered: Option<AgentDefinition>,
        ids: &dyn Ids,
    ) -> Result<NewJob, OjsError> {
        let engagement = match self.agent {
            None => None,
            Some(request) => {
                let mut new = engagement(request, &self.job_type, registered, ids)?;
                let most = new.agent.limits.max_delegation_depth;
                new.depth = agent_fields::claimed_depth(&self.envelope.extra, most)?;
                Some(new)
            }
        };
        let tenant = self.options.terms.tenant.as_deref();
        let id = self.id.map_or_else(|| JobId(ids.next()), |chosen| JobId::chosen(chosen.as_str(), tenant));
        Ok(NewJob {
            id,
            job_type: self.job_type,
            queue: self.options.queue,
            priority: self.options.priority,
            run_at: self.options.run_at,
            expires_at: self.options.expires_at,
            timeout_ms: self.options.timeout_ms,
            retry: self.options.retry,
            envelope: self.envelope,
            engagement,
            terms: self.options.terms,
            created_at: self.received_at,
        })
    }
}

fn check_version(top: &RawObject) -> Result<(), OjsError> {
    let Some(version) = top.get("specversion") else { return Ok(()) };
    let version = read::value(version).and_then(|version| read::text(&version).map(str::to_owned));
    let version = version.map_err(|why| OjsError::invalid_request("specversion", why))?;
    if speaks(&version) {
        return Ok(());
    }
    let shown = read::shortened(&version, 40);
    Err(OjsError::unsupported(format!("specversion `{shown}` is not supported; this server supports 1.0."))
        .with("field", "specversion"))
}

/// Returns the type, and the version that it carries, if it does.
fn job_type(value: Option<RawJson>) -> Result<(String, Option<String>), OjsError> {
    let wrong = |why: String| OjsError::invalid_request("type", why);
    let Some(value) = value else { return Err(wrong("is missing".to_owned())) };
    let value = read::value(&value).map_err(wrong)?;
    let text = read::filled_text(&value).map_err(wrong)?;
    let (name, version) = names::versioned(text);
    let shown = || read::shortened(text, 60);
    names::check_job_type(name).map_err(|why| wrong(format!("`{}` {why}", shown())))?;
    Ok((name.to_owned(), version.map(str::to_owned)))
}

fn args(value: Option<RawJson>) -> Result<RawJson, OjsError> {
    match value {
        Some(args) if args.is_array() => Ok(args),
        Some(other) => Err(OjsError::invalid_request(
            "args",
            format!("must be an array, not {}", read::raw_kind(&other)),
        )),
        None => Err(OjsError::invalid_request("args", "is missing; send [] for a job without arguments")),
    }
}

fn job_id(value: &RawJson) -> Result<JobId, OjsError> {
    match value.parse::<String>() {
        Ok(text) if is_uuid_v7(&text) => Ok(JobId(text)),
        _ => Err(OjsError::invalid_request("id", "must be a UUIDv7 in lower case; leave it out to get one")),
    }
}

fn object(member: Option<RawJson>, field: &str) -> Result<RawObject, OjsError> {
    let given = Fields(member.map(|value| (field.to_owned().into(), value)).into_iter().collect());
    Ok(given.object(field)?.unwrap_or_default())
}

/// Returns the tags that the runtime of the worker must offer (OJS runtimes): `meta["ojs.ext_runtime"].tags`.
fn runtime_tags(meta: &RawObject) -> Result<Vec<String>, OjsError> {
    let Some(runtime) = meta.given("ojs.ext_runtime").filter(|value| value.is_object()) else {
        return Ok(Vec::new());
    };
    let tags = runtime.parse::<RawObject>().ok().and_then(|runtime| runtime.given("tags").cloned());
    let wrong = |why: String| OjsError::invalid_request("meta.ojs.ext_runtime.tags", why);
    let tags = tags.map(|tags| read::value(&tags).and_then(|tags| read::texts(&tags)));
    Ok(tags.transpose().map_err(wrong)?.unwrap_or_default())
}

fn agent_request(top: &RawObject, meta: &RawObject) -> Result<Option<AgentRequest>, OjsError> {
    let of_meta = |name: &str| {
        let wrong = |why: String| OjsError::agent_parameter(&format!("meta.{name}"), why);
        meta.given(name).map(read::value).transpose().map_err(wrong)
    };
    let name = match of_meta("agent")? {
        None => None,
        Some(value) => Some(
            read::filled_text(&value).map_err(|why| OjsError::agent_parameter("meta.agent", why))?.to_owned(),
        ),
    };
    let fields = agent_fields::given_in(top)?;
    if name.is_none() && fields.is_empty() {
        return Ok(None);
    }
    let user = of_meta("user")?.map_or(Ok(User::default()), |value| user(&value))?;
    Ok(Some(AgentRequest { name, fields: agent_fields::read(&fields)?, user }))
}

/// Returns the user of the engagement. Restrictions may depend on it, so an identity that cannot be read is not dropped
/// silently.
fn user(user: &Value) -> Result<User, OjsError> {
    let wrong = |why: String| OjsError::agent_parameter("meta.user", why);
    let user = read::object(user).map_err(wrong)?;
    let id = user.get("id").ok_or_else(|| wrong("has no `id`".to_owned()))?;
    let id = read::filled_text(id).map_err(|why| wrong(format!("has an `id` that {why}")))?;
    let email = user.get("email").filter(|value| !value.is_null()).map(read::text).transpose();
    let email = email.map_err(|why| wrong(format!("has an `email` that {why}")))?;
    Ok(User { id: id.to_owned(), email: email.map(str::to_owned) })
}

fn engagement(
    request: AgentRequest,
    job_type: &str,
    registered: Option<AgentDefinition>,
    ids: &dyn Ids,
) -> Result<NewEngagement, OjsError> {
    let agent = match (request.name, registered) {
        (None, _) => AgentDefinition::ad_hoc(job_type, request.fields),
        (Some(_), Some(agent)) => agent.narrowed_by(request.fields).map_err(OjsError::agent)?,
        (Some(name), None) => {
            let shown = read::shortened(&name, 100);
            let why = format!(
                "names agent `{shown}`, which is not registered; register it, or leave meta.agent out"
            );
            return Err(OjsError::agent_parameter("meta.agent", why));
        }
    };
    if agent.tool_choice == ToolChoice::Required && agent.capabilities.is_empty() {
        let why = "is `required`, but the job has no tool to call";
        return Err(OjsError::agent_parameter("ext_agent_tool_choice", why));
    }
    Ok(NewEngagement { id: EngagementId(ids.next()), agent, user: request.user, depth: 0 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accepted;
    use serde_json::json;
    use std::sync::atomic::{AtomicU64, Ordering};
    use turnstone_domain::JobState;
    use turnstone_domain::agent::{Capability, Limits, OutputFormat};

    const NOW: Timestamp = Timestamp(1_767_225_600_000);
    const ID: &str = "0190a7b2-0000-7000-8000-000000000001";

    #[derive(Default)]
    struct CountedIds(AtomicU64);
    impl Ids for CountedIds {
        fn next(&self) -> String {
            format!("0190a7b2-0000-7000-8000-{:012x}", self.0.fetch_add(1, Ordering::Relaxed) + 100)
        }
    }

    fn read(body: &Value) -> Result<EnqueueRequest, OjsError> {
        EnqueueRequest::from_fields(RawObject::of(body.as_object().unwrap()), None, NOW)
    }

    fn job_to_json(job: &turnstone_domain::Job) -> Value {
        serde_json::to_value(crate::JobBody::from(job)).unwrap()
    }

    fn job(body: &Value, registered: Option<AgentDefinition>) -> Result<NewJob, OjsError> {
        read(body)?.into_new_job(registered, &CountedIds::default())
    }

    /// Returns a job in the shape of the agent extension's own example.
    fn research() -> Value {
        json!({
            "type": "agent.research",
            "args": ["Compare three ways of storing heat"],
            "options": {"queue": "ai-agents", "timeout_ms": 120_000},
            "ext_agent_model": "gpt-4o",
            "ext_agent_fallback_models": ["claude-3.5-sonnet", "gpt-4o-mini"],
            "ext_agent_provider": "openai",
            "ext_agent_temperature": 0.7,
            "ext_agent_max_tokens": 4096,
            "ext_agent_token_budget": 50_000,
            "ext_agent_tools": [{
                "name": "web_search",
                "description": "Find pages",
                "parameters": {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]},
            }],
            "ext_agent_tool_choice": "auto",
            "ext_agent_output_schema": {
                "type": "object",
                "properties": {"summary": {"type": "string"}, "sources": {"type": "array", "items": {"type": "string"}}},
                "required": ["summary"],
            },
            "ext_agent_output_format": "json",
        })
    }

    #[test]
    fn the_research_job_is_accepted_and_every_field_comes_back() {
        let job = job(&research(), None).unwrap();
        let agent = &job.engagement.as_ref().unwrap().agent;
        assert_eq!(agent.name, "agent.research");
        assert_eq!(
            agent.model.models.iter().map(|m| m.model.as_str()).collect::<Vec<_>>(),
            ["gpt-4o", "claude-3.5-sonnet", "gpt-4o-mini"]
        );
        assert_eq!((agent.model.temperature, agent.model.max_tokens), (Some(0.7), Some(4096)));
        assert_eq!((agent.limits.token_budget, agent.output.format), (Some(50_000), OutputFormat::Json));
        assert_eq!((job.queue.as_str(), job.timeout_ms), ("ai-agents", Some(120_000)));

        let shown = job_to_json(&accepted(job, JobState::Available));
        for (field, sent) in research().as_object().unwrap() {
            assert_eq!(&shown[field], sent, "{field}");
        }
        let keys: Vec<&String> =
            shown.as_object().unwrap().keys().filter(|k| k.starts_with("ext_agent_m")).collect();
        assert_eq!(keys, ["ext_agent_model", "ext_agent_max_tokens"], "the client's order is kept");
        assert_eq!(
            (&shown["attempt"], &shown["max_attempts"], &shown["state"]),
            (&json!(0), &json!(3), &json!("available"))
        );
    }

    #[test]
    fn a_plain_job_has_no_engagement_and_keeps_unknown_fields() {
        let body = json!({
            "type": "email.send-now", "args": [{"a": null}, 2.75], "id": ID,
            "meta": {"ojs.codec.key_id": "k", "agentish": 1},
            "x_custom": [1, {"b": null}], "ext_agent_v2": {"state": "running"}, "schema": "urn:x",
        });
        let job = job(&body, None).unwrap();
        assert_eq!((job.engagement.is_none(), job.id.as_str()), (true, ID));
        let shown = job_to_json(&accepted(job, JobState::Available));
        for (field, sent) in body.as_object().unwrap() {
            assert_eq!(&shown[field], sent, "{field}");
        }
    }

    /// OJS job versioning §5.2 and §5.3.
    #[test]
    fn a_version_stands_beside_the_type_or_in_it() {
        let shown = |body: &Value| job_to_json(&accepted(job(body, None).unwrap(), JobState::Available));
        let in_it = shown(&json!({"type": "invoice.generate@2.0", "args": []}));
        assert_eq!((&in_it["type"], &in_it["version"]), (&json!("invoice.generate"), &json!("2.0")));
        let both = shown(&json!({"type": "invoice.generate@2.0", "version": 3, "args": []}));
        assert_eq!((&both["type"], &both["version"]), (&json!("invoice.generate"), &json!(3)));
        let beside = shown(&json!({"type": "a", "version": "1.4", "args": []}));
        assert_eq!((&beside["type"], &beside["version"]), (&json!("a"), &json!("1.4")));
        assert_eq!(shown(&json!({"type": "a", "args": []})).get("version"), None);
    }

    #[test]
    fn system_managed_fields_are_ignored() {
        let body = json!({
            "type": "agent.a", "args": [], "specversion": "1.0", "state": "completed", "attempt": 7, "result": 1,
            "started_at": "x", "error": {}, "max_attempts": 99, "ext_agent_model": "m",
            "ext_agent_tokens_used": 999_999, "ext_agent_tool_results": [1], "ext_agent_model_used": "n",
            "ext_agent_engagement_id": "mine",
        });
        let job = job(&body, None).unwrap();
        assert_eq!(job.envelope.extra.names().collect::<Vec<_>>(), ["ext_agent_model"]);
        let shown = job_to_json(&accepted(job, JobState::Available));
        for absent in ["result", "error", "started_at", "ext_agent_tokens_used", "ext_agent_tool_results"] {
            assert_eq!(shown.get(absent), None, "{absent}");
        }
        assert_eq!(shown["max_attempts"], 3);
    }

    #[test]
    fn the_envelope_form_means_the_same_and_options_win() {
        let body = json!({
            "type": "a", "args": [], "queue": "top", "priority": 5, "timeout": 3, "expires_at": "+PT1M",
            "options": {"priority": 7, "metadata": {"a": 1, "b": 2}}, "meta": {"a": 0},
        });
        let job = job(&body, None).unwrap();
        assert_eq!((job.queue.as_str(), job.priority, job.timeout_ms), ("top", 7, Some(3000)));
        assert_eq!(job.expires_at, Some(NOW.plus_ms(60_000)));
        assert_eq!(job.envelope.meta.to_raw().as_str(), r#"{"a":0,"b":2}"#);
    }

    #[test]
    fn wrong_requests_are_refused_and_named() {
        for (body, status, code, field) in [
            (json!({"args": []}), 400, "invalid_request", "type"),
            (json!({"type": 3, "args": []}), 400, "invalid_request", "type"),
            (json!({"type": "", "args": []}), 400, "invalid_request", "type"),
            (json!({"type": "Email.Send", "args": []}), 400, "invalid_request", "type"),
            (json!({"type": "email send", "args": []}), 400, "invalid_request", "type"),
            (json!({"type": "1email.send", "args": []}), 400, "invalid_request", "type"),
            (json!({"type": "email@send!", "args": []}), 400, "invalid_request", "type"),
            (json!({"type": "a..b", "args": []}), 400, "invalid_request", "type"),
            (json!({"type": "a".repeat(256), "args": []}), 400, "invalid_request", "type"),
            (json!({"type": "a"}), 400, "invalid_request", "args"),
            (json!({"type": "a", "args": {}}), 400, "invalid_request", "args"),
            (json!({"type": "a", "args": null}), 400, "invalid_request", "args"),
            (json!({"type": "a", "args": [], "id": ""}), 400, "invalid_request", "id"),
            (json!({"type": "a", "args": [], "id": null}), 400, "invalid_request", "id"),
            (json!({"type": "a", "args": [], "id": ID.to_uppercase()}), 400, "invalid_request", "id"),
            (
                json!({"type": "a", "args": [], "id": "0190a7b2-0000-4000-8000-000000000001"}),
                400,
                "invalid_request",
                "id",
            ),
            (json!({"type": "a", "args": [], "meta": []}), 400, "invalid_request", "meta"),
            (json!({"type": "a", "args": [], "options": 1}), 400, "invalid_request", "options"),
            (json!({"type": "a", "args": [], "queue": "A"}), 400, "invalid_request", "options.queue"),
            (json!({"type": "a", "args": [], "specversion": "2.0"}), 422, "unsupported", "specversion"),
            (json!({"type": "a", "args": [], "specversion": 1}), 400, "invalid_request", "specversion"),
            (
                json!({"type": "a", "args": [], "ext_agent_temperature": 3}),
                400,
                "AGENT_INVALID_PARAMETER",
                "ext_agent_temperature",
            ),
            (
                json!({"type": "a", "args": [], "ext_agent_tool_choice": "required"}),
                400,
                "AGENT_INVALID_PARAMETER",
                "ext_agent_tool_choice",
            ),
            (
                json!({"type": "a", "args": [], "meta": {"agent": 1}}),
                400,
                "AGENT_INVALID_PARAMETER",
                "meta.agent",
            ),
            (
                json!({"type": "a", "args": [], "meta": {"agent": "who"}}),
                400,
                "AGENT_INVALID_PARAMETER",
                "meta.agent",
            ),
            (
                json!({"type": "a", "args": [], "meta": {"user": "u"}, "ext_agent_model": "m"}),
                400,
                "AGENT_INVALID_PARAMETER",
                "meta.user",
            ),
        ] {
            let error = job(&body, None).unwrap_err();
            assert_eq!((error.status, error.code), (status, code), "{body}: {error}");
            assert_eq!(error.details["field"], field, "{body}: {error}");
        }
    }

    #[test]
    fn a_registered_agent_is_narrowed() {
        let registered = AgentDefinition {
            name: "helper".into(),
            capabilities: vec![Capability::named("search"), Capability::named("mail")],
            limits: Limits { token_budget: Some(1000), ..Limits::default() },
            ..AgentDefinition::default()
        };
        let mut body = json!({
            "type": "agent.run", "args": ["x"], "ext_agent_token_budget": 9000,
            "meta": {"agent": "helper", "user": {"id": "u-1", "email": "u@example.com"}},
        });
        assert_eq!(read(&body).unwrap().agent_name(), Some("helper"));
        let engagement = job(&body, Some(registered.clone())).unwrap().engagement.unwrap();
        assert_eq!(
            (engagement.agent.name.as_str(), engagement.agent.limits.token_budget),
            ("helper", Some(1000))
        );
        assert_eq!(engagement.user, User { id: "u-1".into(), email: Some("u@example.com".into()) });

        body["ext_agent_tools"] = json!([{"name": "rm"}]);
        let error = job(&body, Some(registered)).unwrap_err();
        assert_eq!((error.status, error.code), (422, "AGENT_TOOL_NOT_FOUND"));
    }

    #[test]
    fn terms_come_from_options_and_meta() {
        let body = json!({
            "type": "a.b", "args": [1],
            "meta": {"ojs.ext_runtime": {"tags": ["wasm"]}, "tenant_id": "acme"},
            "options": {"unique": {"keys": ["args"]}, "pending": true},
        });
        let job = job(&body, None).unwrap();
        assert_eq!(job.terms.runtime_tags, ["wasm"]);
        assert_eq!((job.terms.tenant.as_deref(), job.terms.pending), (Some("acme"), true));
        let same = read(&json!({"type": "a.b", "args": [1.0], "unique": {"keys": ["args"]}})).unwrap();
        assert_eq!(same.options.terms.unique.map(|u| u.fingerprint), job.terms.unique.map(|u| u.fingerprint));
        let error = read(&json!({"type": "a", "args": [], "meta": {"ojs.ext_runtime": {"tags": "wasm"}}}));
        assert_eq!(error.unwrap_err().details["field"], "meta.ojs.ext_runtime.tags");
    }

    #[test]
    fn the_tenant_of_the_header_is_in_meta() {
        let body = json!({"type": "a.b", "args": [], "meta": {"z": 1}});
        let top = RawObject::of(body.as_object().unwrap());
        let request = EnqueueRequest::from_fields(top, Some("acme"), NOW).unwrap();
        assert_eq!(request.envelope.meta.to_raw().as_str(), r#"{"z":1,"tenant_id":"acme"}"#);
        assert_eq!(request.options.terms.tenant.as_deref(), Some("acme"));
    }
}
