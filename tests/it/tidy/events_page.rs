//! `docs/EVENTS.md`, generated from the names in the code.

use std::fmt::Write as _;
use turnstone_domain::EventName;
use turnstone_ojs::OssaEvent;
use turnstone_telemetry::names::{self, Kind};

const HEAD: &str = "# Events, spans and attributes

Use this page to look up the names of events, spans, attributes and metrics, and the data of each.

The page is generated from `EventName` in `shared/domain/src/event.rs` and from `shared/telemetry/src/names.rs`. Do not
edit it; run `TURNSTONE_BLESS=1 cargo test --workspace --test tidy events`.

## Events

An event records a change. It is written in the same transaction as the change: a reader never sees an event of a
change that was rolled back, and never misses one of a committed change. Events of an engagement are numbered from 1
without gaps; the number is the cursor of a reader (`Last-Event-ID`).

`GET /ojs/v1/events` has the events of all jobs, queues, cron entries and workflows in one order, as CloudEvents. There
the id of an event is the cursor. Events inside the turns of agents (`phase.`, `model.`, `tool.`, `budget.`, `output.`)
are sent only to readers and webhooks that name them, as in `types=phase.*`. A number in `result` that no 64-bit float
holds exactly is exact only in the job itself.

Every event carries `seq`, `name`, `job_id`, `engagement_id` (agent jobs), `turn` (0 outside of turns), `at` and
`data` with the fields below.

| name | when | fields of `data` | ends the job |
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

/// Returns the page.
pub fn render() -> String {
    let mut page = HEAD.to_owned();
    for event in EventName::ALL {
        let ends = if event.ends_job() { "yes" } else { "" };
        writeln!(page, "| `{event}` | {} | {} | {ends} |", event.meaning().trim(), event.data_fields())
            .unwrap();
    }
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
