//! Durations and times: each member that takes one reads the same texts, and refuses others by its name.

use super::on_sqlite_first;
use reqwest::Method;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use turnstone_tests::OjsServer;

on_sqlite_first![
    a_fraction_of_a_duration_counts_in_every_member,
    a_text_that_is_no_duration_is_refused_by_its_member,
    every_member_that_takes_a_time_is_tested,
];

/// The kinds of members.
#[derive(Clone, Copy)]
enum Kind {
    /// A point in time: RFC 3339.
    Time,
    /// A point in time: RFC 3339, or relative.
    Moment,
    /// A duration: ISO 8601, or seconds.
    Duration,
    /// ISO 8601 alone.
    Iso,
    /// A whole number of a unit.
    Number,
}

impl Kind {
    fn accepted(self) -> Vec<Value> {
        let times = ["2026-01-31t12:00:00z", "2026-01-31T12:00:00.5-01:00", "2030-12-31T23:59:60Z"];
        let durations = ["PT1.5H", "PT0,5M", "P1W", "P1DT12H", "PT4294967S"];
        match self {
            Self::Time => times.map(Value::from).to_vec(),
            Self::Moment => times
                .map(Value::from)
                .into_iter()
                .chain(durations.map(|text| format!("+{text}").into()))
                .collect(),
            Self::Duration => durations.map(Value::from).into_iter().chain([json!(5)]).collect(),
            Self::Iso => durations.map(Value::from).to_vec(),
            Self::Number => vec![json!(1)],
        }
    }

    fn refused(self) -> Vec<Value> {
        let times = [
            "2026-01-31T12:00:00",
            "2026-02-30T12:00:00Z",
            "2026-01-31T12:00:60Z",
            "10000-01-01T00:00:00Z",
            "9999-12-31T23:59:59-01:00",
            "yesterday",
            "",
        ];
        let durations = [
            "P1D12H",
            "PT1.5H30M",
            "-PT5S",
            "P1Y",
            "P99999999999999999999D",
            "PT99999999999999999999S",
            "PT1",
            "5m",
            "",
        ];
        match self {
            Self::Time => times.map(Value::from).into_iter().chain([json!("PT1.5H30M")]).collect(),
            Self::Moment => times
                .map(Value::from)
                .into_iter()
                .chain(durations.map(|text| format!("+{text}").into()))
                .collect(),
            Self::Duration => durations.map(Value::from).into_iter().chain([json!(-1), json!(1.5)]).collect(),
            Self::Iso => durations.map(Value::from).into_iter().chain([json!(5)]).collect(),
            Self::Number => vec![json!(-1), json!(1.5), json!(1e300), json!(i64::MAX), json!("PT1S")],
        }
    }
}

/// A member of a request, or a parameter of its query.
struct Member {
    /// Its name in errors.
    name: &'static str,
    kind: Kind,
    method: Method,
    path: &'static str,
    /// The body, with a null at the value; null for a parameter.
    body: Value,
}

fn member(name: &'static str, kind: Kind, method: Method, path: &'static str, body: Value) -> Member {
    Member { name, kind, method, path, body }
}

/// Returns the members of the options of a job.
fn options() -> Vec<Member> {
    let job = |name, kind, body: Value| {
        let mut sent = json!({"type": "mail.send", "args": []});
        sent.as_object_mut().unwrap().extend(body.as_object().unwrap().clone());
        member(name, kind, Method::POST, "/ojs/v1/jobs", sent)
    };
    let option = |name, kind, options: Value| job(name, kind, json!({"options": options}));
    vec![
        job("timeout", Kind::Duration, json!({"timeout": null})),
        job("options.expires_at", Kind::Moment, json!({"expires_at": null})),
        option("options.scheduled_at", Kind::Moment, json!({"scheduled_at": null})),
        option("options.delay_until", Kind::Moment, json!({"delay_until": null})),
        option("options.expires_at", Kind::Moment, json!({"expires_at": null})),
        option("options.timeout_ms", Kind::Number, json!({"timeout_ms": null})),
        option("options.timeout", Kind::Duration, json!({"timeout": null})),
        option("options.timeout", Kind::Duration, json!({"timeout": null, "timeout_ms": 1})),
        job("options.visibility_timeout", Kind::Duration, json!({"visibility_timeout": null})),
        job(
            "options.scheduled_at",
            Kind::Moment,
            json!({"scheduled_at": null, "options": {"scheduled_at": "+PT1H"}}),
        ),
        option("options.visibility_timeout_ms", Kind::Number, json!({"visibility_timeout_ms": null})),
        option("options.visibility_timeout", Kind::Duration, json!({"visibility_timeout": null})),
        option(
            "options.retry.initial_interval",
            Kind::Iso,
            json!({"retry": {"initial_interval": null, "max_interval": "P8W"}}),
        ),
        option("options.retry.max_interval", Kind::Iso, json!({"retry": {"max_interval": null}})),
        option(
            "options.unique.period",
            Kind::Duration,
            json!({"unique": {"period": null, "on_conflict": "ignore"}}),
        ),
        option(
            "options.rate_limit.period",
            Kind::Duration,
            json!({"rate_limit": {"key": "k", "rate": 1, "period": null}}),
        ),
        option(
            "options.rate_limit.rate.period",
            Kind::Duration,
            json!({"rate_limit": {"key": "k", "rate": {"limit": 1, "period": null}}}),
        ),
        option(
            "options.rate_limit.throttle",
            Kind::Duration,
            json!({"rate_limit": {"key": "k", "throttle": null}}),
        ),
    ]
}

/// Returns the members that no job has.
#[expect(clippy::too_many_lines, reason = "a table")]
fn others() -> Vec<Member> {
    use Kind::{Duration, Number, Time};
    let put = |name, path, body| member(name, Duration, Method::PUT, path, body);
    let post = |name, kind, path, body| member(name, kind, Method::POST, path, body);
    let get = |name, path| member(name, Time, Method::GET, path, Value::Null);
    let config = "/ojs/v1/admin/queues/q/config";
    let template = json!({"type": "a", "args": [], "options": {"visibility_timeout": null}});
    let mut members = vec![
        put("retention.completed", config, json!({"retention": {"completed": null}})),
        put("retention.discarded", config, json!({"retention": {"discarded": null}})),
        put("retention.cancelled", "/ojs/v1/queues/q", json!({"retention": {"cancelled": null}})),
        put("rate_limit.throttle", config, json!({"rate_limit": {"throttle": null}})),
        put(
            "rate_limit.rate.period",
            "/ojs/v1/queues/q",
            json!({"rate_limit": {"rate": {"limit": 1, "period": null}}}),
        ),
        put("rate.period", "/ojs/v1/rate-limits/k", json!({"rate": {"limit": 1, "period": null}})),
        put("throttle", "/ojs/v1/rate-limits/k", json!({"throttle": null})),
        post(
            "visibility_timeout_ms",
            Number,
            "/ojs/v1/workers/fetch",
            json!({"queues": ["none"], "visibility_timeout_ms": null}),
        ),
        post(
            "visibility_timeout_ms",
            Number,
            "/ojs/v1/jobs/fetch",
            json!({"queues": ["none"], "visibility_timeout_ms": null}),
        ),
        post(
            "visibility_timeout_ms",
            Number,
            "/ojs/v1/workers/beat",
            json!({"worker_id": "w", "visibility_timeout_ms": null}),
        ),
        post(
            "visibility_timeout_ms",
            Number,
            "/ojs/v1/workers/heartbeat",
            json!({"worker_id": "w", "visibility_timeout_ms": null}),
        ),
        post("expires_at", Time, "/keys", json!({"name": "k", "roles": ["viewer"], "expires_at": null})),
        post("grace_seconds", Number, "/keys/unknown/rotate", json!({"grace_seconds": null})),
        post(
            "grace_seconds",
            Number,
            "/ojs/v1/webhooks/subscriptions/unknown/rotate-secret",
            json!({"grace_seconds": null}),
        ),
        post(
            "override.timeout_ms",
            Number,
            "/ojs/v1/dead-letter/unknown/retry",
            json!({"override": {"timeout_ms": null}}),
        ),
        post(
            "filter.since",
            Time,
            "/ojs/v1/jobs/bulk/cancel",
            json!({"confirm": true, "filter": {"queue": "none", "since": null}}),
        ),
        post(
            "filter.until",
            Time,
            "/ojs/v1/jobs/bulk/delete",
            json!({"confirm": true, "filter": {"queue": "none", "until": null}}),
        ),
        post(
            "filter.until",
            Time,
            "/ojs/v1/dead-letter/purge",
            json!({"confirm": true, "filter": {"queue": "none", "until": null}}),
        ),
        post(
            "visibility_timeout",
            Duration,
            "/ojs/v1/cron",
            json!({"name": "c", "expression": "@daily", "job_template": template}),
        ),
        post(
            "visibility_timeout",
            Duration,
            "/ojs/v1/workflows",
            json!({"type": "chain", "steps": [template]}),
        ),
        post("visibility_timeout", Duration, "/ojs/v1/jobs/batch", json!({"jobs": [template]})),
        get("since", "/engagements?since="),
        member(
            "older_than",
            Time,
            Method::DELETE,
            "/ojs/v1/admin/queues/none/jobs?confirm=true&older_than=",
            Value::Null,
        ),
        member(
            "older_than",
            Kind::Iso,
            Method::DELETE,
            "/ojs/v1/admin/queues/none/jobs?confirm=true&older_than=",
            Value::Null,
        ),
    ];
    members.extend(
        [
            "/ojs/v1/jobs?since=",
            "/ojs/v1/admin/jobs?since=",
            "/ojs/v1/dead-letter?since=",
            "/ojs/v1/admin/dead-letter?since=",
            "/ojs/v1/admin/tenants/t/jobs?since=",
        ]
        .map(|path| get("since", path)),
    );
    members.extend(["/ojs/v1/jobs?until=", "/ojs/v1/dead-letter?until="].map(|path| get("until", path)));
    members
}

/// Puts the value in the place of the null.
fn fill(body: &mut Value, value: &Value) {
    match body {
        Value::Null => *body = value.clone(),
        Value::Object(members) => members.values_mut().for_each(|member| fill(member, value)),
        Value::Array(items) => items.iter_mut().for_each(|item| fill(item, value)),
        _ => {}
    }
}

impl Member {
    /// Sends a value. Returns the name that the error has, and the whole answer.
    async fn send(&self, server: &OjsServer, value: &Value) -> (Option<String>, String) {
        let reply = if self.body.is_null() {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let text = text.replace('+', "%2B");
            server.send(self.method.clone(), &format!("{}{text}", self.path), &[], "").await
        } else {
            let mut body = self.body.clone();
            fill(&mut body, value);
            server.send(self.method.clone(), self.path, &[], body.to_string()).await
        };
        let field = match reply.status {
            400 | 422 => reply.json()["error"]["details"]["field"].as_str().map(str::to_owned),
            _ => None,
        };
        (
            field,
            format!("{} {} {}: {value} {} {}", self.method, self.path, self.name, reply.status, reply.text),
        )
    }
}

/// A duration has the same length wherever it is written.
async fn a_fraction_of_a_duration_counts_in_every_member(server: &OjsServer) {
    let now = server.fleet.now();
    let job = |options: Value| json!({"type": "mail.send", "args": [], "options": options});
    for (text, ms) in [
        ("PT1.5H", 5_400_000),
        ("PT0,5M", 30_000),
        ("PT1H30.5M", 5_430_000),
        ("P1DT12H", 129_600_000),
        ("P0.5D", 43_200_000),
        ("PT4294967296S", 4_294_967_296_000_i64),
    ] {
        let id = server.push(&job(json!({"scheduled_at": format!("+{text}")}))).await;
        let shown = server.job(&id).await;
        assert_eq!(shown["scheduled_at"], now.plus_ms(ms).to_rfc3339(), "{text}: {shown:#}");
        assert_eq!(shown["state"], "scheduled", "{text}");
        let id = server.push(&job(json!({"expires_at": format!("+{text}")}))).await;
        let shown = server.job(&id).await;
        assert_eq!(shown["expires_at"], now.plus_ms(ms).to_rfc3339(), "{text}: {shown:#}");
        assert_eq!(shown["state"], "available", "{text}");
    }
    server.fleet.tick().await;
    let retry = json!({"initial_interval": "PT0.5M", "jitter": false});
    let id = server.push(&job(json!({"queue": "failing", "retry": retry}))).await;
    let fetched =
        server.post("/ojs/v1/workers/fetch", &json!({"queues": ["failing"]})).await.expect(200).json();
    assert_eq!(fetched["jobs"][0]["id"], id);
    let failed = json!({"job_id": id, "error": {"code": "e", "message": "m"}});
    let reply = server.post("/ojs/v1/workers/nack", &failed).await.expect(200).json();
    assert_eq!(reply["retry_delay_ms"], 30_000, "{reply:#}");
}

async fn a_text_that_is_no_duration_is_refused_by_its_member(server: &OjsServer) {
    for member in options().into_iter().chain(others()) {
        for value in member.kind.refused() {
            let (field, answer) = member.send(server, &value).await;
            assert!(field.is_some_and(|field| field.ends_with(member.name)), "{answer}");
        }
    }
    assert_eq!(server.stored_jobs().await, 0, "a refused request stores no job");
    for member in options().into_iter().chain(others()) {
        for value in member.kind.accepted() {
            let (field, answer) = member.send(server, &value).await;
            assert_eq!(field, None, "{answer}");
        }
    }
}

/// The members of `/openapi.json` that seem to take a time or a duration, and are not read as one.
const NEITHER: [&str; 13] = [
    // Reports and names.
    "issued_at",
    "rate_per_minute",
    "max_per_second",
    "timezone",
    // Percent, and numbers of events and of days.
    "warn_at",
    "after",
    "before",
    "days",
    "hours",
    "tokens_per_day",
    "cost_per_day",
    // Objects, whose members are in the table.
    "retention",
    "retry",
];

async fn every_member_that_takes_a_time_is_tested(server: &OjsServer) {
    let document = server.get("/openapi.json").await.expect(200).json();
    let tested: BTreeSet<&str> = options()
        .iter()
        .chain(&others())
        .flat_map(|member| member.name.split('.').collect::<Vec<_>>())
        .collect();
    let mut found = BTreeSet::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let place = format!("{method} {path}");
            for given in operation["parameters"].as_array().into_iter().flatten() {
                if given["in"] == "query"
                    && takes_time(given["name"].as_str().unwrap(), given, &given["schema"])
                {
                    found.insert((given["name"].as_str().unwrap().to_owned(), place.clone()));
                }
            }
            walk(&document, &operation["requestBody"], &place, &mut BTreeSet::new(), &mut found);
        }
    }
    assert!(found.iter().any(|(name, _)| name == "older_than"), "{found:?}");
    let missing: Vec<_> = found
        .iter()
        .filter(|(name, _)| !tested.contains(name.as_str()) && !NEITHER.contains(&name.as_str()))
        .collect();
    assert!(missing.is_empty(), "put these into the table of members, or into NEITHER: {missing:#?}");
}

/// Returns true if a name, a format or a description is that of a time or a duration.
fn takes_time(name: &str, described: &Value, schema: &Value) -> bool {
    let ends = [
        "_at",
        "_ms",
        "_seconds",
        "_minute",
        "_second",
        "_day",
        "timeout",
        "interval",
        "period",
        "throttle",
        "since",
        "until",
        "older_than",
        "deadline",
        "ttl",
        "retention",
        "expires_in",
        "delay",
        "days",
        "hours",
    ];
    let text = described["description"].as_str().unwrap_or_default();
    let is_counter = name == "since" && schema["type"].to_string().contains("integer");
    let format = schema["format"].as_str().unwrap_or_default();
    !is_counter
        && (ends.iter().any(|end| name.ends_with(end))
            || ["RFC 3339", "ISO 8601", "duration", "milliseconds"].iter().any(|word| text.contains(word))
            || ["date-time", "duration"].contains(&format))
}

fn walk(
    document: &Value,
    schema: &Value,
    place: &str,
    seen: &mut BTreeSet<String>,
    found: &mut BTreeSet<(String, String)>,
) {
    match schema {
        Value::Object(members) => {
            if let Some(name) = schema["$ref"].as_str()
                && seen.insert(name.to_owned())
            {
                let referred = document.pointer(name.trim_start_matches('#')).unwrap_or(&Value::Null);
                walk(document, referred, place, seen, found);
            }
            for (name, member) in schema["properties"].as_object().into_iter().flatten() {
                if takes_time(name, member, member) {
                    found.insert((name.clone(), place.to_owned()));
                }
            }
            members
                .iter()
                .filter(|(name, _)| *name != "example" && *name != "examples")
                .for_each(|(_, member)| walk(document, member, place, seen, found));
        }
        Value::Array(items) => items.iter().for_each(|item| walk(document, item, place, seen, found)),
        _ => {}
    }
}
