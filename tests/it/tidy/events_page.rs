//! `docs/EVENTS.md` and the JSON Schemas beside it, generated from the types in the code.

use serde_json::{Map, Value, json};
use std::fmt::Write as _;
use turnstone_domain::{EventName, Phase, checkpoint};
use turnstone_ojs::OssaEvent;
use turnstone_telemetry::names::{self, Kind};

const HEAD: &str = "# Events, spans and attributes

Use this page to look up the names of events, spans, attributes and metrics, and the data of each.

The page is generated from `EventName` in `shared/domain/src/event.rs`, from the types of the data in
`shared/domain/src/event/`, and from `shared/telemetry/src/names.rs`. Do not edit it; run
`TURNSTONE_BLESS=1 cargo test --workspace --test tidy events`. The same types yield the JSON Schemas of events
([events.json](schemas/events.json)) and of the bodies of checkpoints ([checkpoints.json](schemas/checkpoints.json)).

## Events

An event records a change. It is written in the same transaction as the change: a reader never sees an event of a
change that was rolled back, and never misses one of a committed change. Events of an engagement are numbered from 1
without gaps. The number is the cursor of a reader (`since`). Better is the number with the commit, as in `12.829`: it is the
`cursor_id` of a page and the `id` of a stream's event, and is sent back as `since` or `Last-Event-ID`.

`GET /ojs/v1/events` has the events of all jobs, queues, cron entries and workflows in one order, as CloudEvents. There
the id of an event is a cursor. The `cursor` of a page and the `id` of a stream also have the place of its commit. A failover
of PostgreSQL may keep a commit and lose its place. Only cursors with a place are refused then: after an id alone, events may be
missing that were written in the second before the failover. Events inside the turns of agents (`phase.`, `model.`, `tool.`, `budget.`, `output.`)
are sent only to readers and webhooks that name them, as in `types=phase.*`. A number in `result` that no 64-bit float
holds exactly is exact only in the job itself.

### Lost events

A failover may lose commits, and a restored database is older than its readers. Retention deletes events. A cursor names
the commit of its event, so the server finds out that the events up to it are not there:

- A page gets 409 `cursor_lost`. `details.begin` is a cursor before the oldest event, `details.newest` that of the newest.
- A stream sends the event `reset`, with `code`, `message`, `begin` and `newest` as data, and continues from `begin`. An open
  stream does so when it looks for events.

Continue from `begin` and skip the events whose ids you know; continue from `newest` if you need no history. Ids are never
given twice. Cursors of events that both the old and the new database have stay valid. A cursor that is a number alone, such
as `since=12`, and those of the Agent Protocol, are refused only if the stream has fewer events. Webhooks need none of this:
their position is in the database itself.

Every event carries `seq`, `name`, `job_id`, `engagement_id` (agent jobs), `turn` (0 outside of turns), `at` and
`data` with the fields below. A field with `?` may be absent or null. The events of OSSA also carry `interaction_id` and
`instance_id`, and `agent` after a handoff, and `node` in a flow.

| name | when | fields of `data` | ends the job |
|---|---|---|---|
";

const FIELDS: &str = "
## Fields of events

| event | field | form | meaning |
|---|---|---|---|
";

const SPANS: &str = "
## Spans

Spans are made with `tracing`, and log lines name the span in which they were written. Spans are sent by OTLP when an
`OTEL_*` variable names a collector. [TELEMETRY](TELEMETRY.md) describes the settings and the tree of spans.

| name | what |
|---|---|
";

const ATTRIBUTES: &str = "
## Attributes of spans

| name | what |
|---|---|
";

const OSSA: &str = "
## Events of OSSA

The events above in OSSA's format, for readers of `GET /ojs/v1/events` and webhooks that name their type (`io.ossa.*`).

| type | when |
|---|---|
";

const INSTRUMENTS: &str = "
## Metrics of agents

Sent by OTLP, and returned by `GET /metrics` of the counting process. There names have `_` instead of `.`, the unit as a
suffix, and `_total` for counters: `ossa_agent_turns_total`, `ossa_agent_latency_milliseconds`.

| name | what |
|---|---|
";

const METRICS: &str = "
## Metrics of the server

The answer of `GET /metrics` of the API, in the text format of Prometheus. Figures from the store are at most five
seconds old.

| name | what |
|---|---|
";

/// A JSON Schema of several documents: one property for each, and the types that they share.
pub struct Schemas {
    names: Map<String, Value>,
    types: Map<String, Value>,
}

impl Schemas {
    /// Returns the schemas of the data of events, by the event's name.
    pub fn of_events() -> Self {
        let mut found = Vec::new();
        let names =
            EventName::ALL.iter().map(|event| (event.as_str(), event.add_schemas(&mut found))).collect();
        Self::of(names, &json!(found))
    }

    /// Returns the schemas of the bodies of checkpoints, by the phase.
    pub fn of_checkpoints() -> Self {
        let mut found = Vec::new();
        let name = |phase: Phase| (phase.as_str(), checkpoint::add_schemas(phase, &mut found));
        let names = Phase::ALL.into_iter().map(name).collect();
        Self::of(names, &json!(found))
    }

    fn of<N: Into<String>>(names: Vec<(&str, N)>, found: &Value) -> Self {
        let names = names
            .into_iter()
            .map(|(name, of)| (name.to_owned(), json!({"$ref": format!("#/$defs/{}", of.into())})));
        let text = found.to_string().replace("#/components/schemas/", "#/$defs/");
        let mut pairs: Vec<(String, Value)> = serde_json::from_str(&text).unwrap();
        // The fields of a part that may be absent are optional: no field of an object makes it `null`.
        for part in
            pairs.iter_mut().filter_map(|(_, schema)| schema.get_mut("allOf")?.as_array_mut()).flatten()
        {
            if let Some(Value::Array(mut kinds)) = part.get_mut("oneOf").map(Value::take) {
                kinds.retain(|kind| kind["type"] != "null");
                kinds.push(json!({"type": "object"}));
                *part = json!({"anyOf": kinds});
            }
        }
        let mut types = Map::new();
        for (name, schema) in pairs {
            let known = types.insert(name.clone(), schema.clone());
            assert!(known.is_none_or(|known| known == schema), "two types of stored data are called {name}");
        }
        types.sort_keys();
        Self { names: names.collect(), types }
    }

    /// Returns the document.
    pub fn render(&self) -> String {
        let document = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": self.names,
            "$defs": self.types,
        });
        format!("{document:#}\n")
    }

    fn resolved<'s>(&'s self, schema: &'s Value) -> &'s Value {
        let name = schema["$ref"].as_str().and_then(|name| name.strip_prefix("#/$defs/"));
        name.map_or(schema, |name| self.resolved(&self.types[name]))
    }

    /// Returns the fields of an object: name, schema, and whether it is always present.
    fn fields<'s>(&'s self, schema: &'s Value) -> Vec<(&'s str, &'s Value, bool)> {
        let schema = self.resolved(schema);
        let is_required = |name: &str| {
            schema["required"].as_array().is_some_and(|required| required.iter().any(|known| known == name))
        };
        let own = schema["properties"].as_object().into_iter().flatten();
        let own = own.map(|(name, field)| (name.as_str(), field, is_required(name)));
        let mut fields = Vec::new();
        for part in schema["allOf"].as_array().into_iter().flatten() {
            fields.extend(self.fields(part));
        }
        let kinds = ["oneOf", "anyOf"].iter().filter_map(|key| schema[*key].as_array()).flatten();
        for part in kinds {
            let new = self.fields(part).into_iter().map(|(name, field, _)| (name, field, false));
            let new: Vec<_> =
                new.filter(|(name, ..)| fields.iter().all(|(known, ..)| known != name)).collect();
            fields.extend(new);
        }
        fields.extend(own);
        fields
    }

    fn form(&self, field: &Value) -> String {
        let schema = self.resolved(field);
        let words = |words: &Vec<Value>| {
            let words: Vec<String> =
                words.iter().filter_map(Value::as_str).map(|word| format!("`{word}`")).collect();
            words.join(", ")
        };
        if let Some(known) = schema["enum"].as_array() {
            return words(known);
        }
        let parts = ["oneOf", "allOf"].iter().filter_map(|key| schema[*key].as_array()).flatten();
        if let Some(part) =
            parts.clone().find(|part| part["type"] != "null" && schema["properties"].is_null())
        {
            return self.form(part);
        }
        let kinds = match &schema["type"] {
            Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).find(|kind| *kind != "null"),
            kind => kind.as_str(),
        };
        match kinds {
            Some("array") => format!("list: {}", self.form(&schema["items"])),
            Some(kind) => kind.to_owned(),
            None => "any".to_owned(),
        }
    }
}

/// Returns the page.
pub fn render() -> String {
    let schemas = Schemas::of_events();
    let mut page = HEAD.to_owned();
    let mut fields = FIELDS.to_owned();
    for event in EventName::ALL {
        let of = &schemas.names[event.as_str()];
        let ends = if event.ends_job() { "yes" } else { "" };
        let names = schemas.fields(of).into_iter();
        let names: Vec<String> =
            names.map(|(name, _, always)| format!("`{name}`{}", if always { "" } else { "?" })).collect();
        let names = names.join(", ");
        writeln!(page, "| `{event}` | {} | {names} | {ends} |", event.meaning().trim()).unwrap();
        let same = EventName::ALL.iter().filter(|other| schemas.names[other.as_str()] == *of);
        if same.clone().next() != Some(event) {
            continue;
        }
        let mut events = same.map(|other| format!("`{other}`")).collect::<Vec<_>>().join(", ");
        for (name, field, _) in schemas.fields(of) {
            let parts = field["oneOf"].as_array().into_iter().flatten();
            let meaning = [field].into_iter().chain(parts).find_map(|part| part["description"].as_str());
            let meaning = meaning.unwrap_or_default();
            writeln!(fields, "| {events} | `{name}` | {} | {meaning} |", schemas.form(field)).unwrap();
            events.clear();
        }
    }
    page.push_str(&fields);
    page.push_str(OSSA);
    for form in OssaEvent::ALL {
        writeln!(page, "| `{}` | {} |", form.as_str(), form.meaning().trim()).unwrap();
    }
    let parts = [
        (SPANS, Kind::Span),
        (ATTRIBUTES, Kind::Attribute),
        (INSTRUMENTS, Kind::Instrument),
        (METRICS, Kind::Metric),
    ];
    for (head, kind) in parts {
        page.push_str(head);
        for name in names::ALL.iter().filter(|name| name.kind == kind) {
            writeln!(page, "| `{}` | {} |", name.name, name.meaning).unwrap();
        }
    }
    page
}
