//! `docs/EVENTS.md`, written from the names in the code.

use std::fmt::Write as _;
use turnstone_domain::EventName;
use turnstone_telemetry::names::{self, Kind};

const HEAD: &str = "# Events, spans and attributes

This page is generated from `EventName` in `shared/domain/src/event.rs` and from `shared/telemetry/src/names.rs`.
Do not edit it; run `TURNSTONE_BLESS=1 cargo test -p turnstone-tests --test tidy events`.

## Events

An event is something that happened. It is written in the transaction that made it true, so a reader never sees one
for a change that was rolled back, and never misses one for a change that was not. Events of an engagement are
numbered from 1 without gaps; the number is the cursor of a reader (`Last-Event-ID`).

`GET /ojs/v1/events` shows the events of all jobs, queues, cron entries and workflows in one order, as CloudEvents; there
the id of an event is the cursor. What happens inside the turns of agents (`phase.`, `model.`, `tool.`, `budget.`,
`output.`) is shown there, and told to webhooks, only to who names it: `types=phase.*`. A number in `result` that no
64-bit float holds exactly is exact only in the job itself.

Every event carries `seq`, `name`, `job_id`, `engagement_id` (agent jobs), `turn` (0 outside of turns), `at` and
`data` with the fields below.

| name | when | fields of `data` | ends the job |
|---|---|---|---|
";

const SPANS: &str = "
## Spans

Spans are made with `tracing` and shown with the log lines inside them. This version does not export them.

| name | what |
|---|---|
";

const ATTRIBUTES: &str = "
## Attributes of spans

| name | what |
|---|---|
";

const METRICS: &str = "
## Metrics

What `GET /metrics` shows, in the text format of Prometheus. What the store holds is at most five seconds old.

| name | what |
|---|---|
";

/// The whole page.
pub fn render() -> String {
    let mut page = HEAD.to_owned();
    for event in EventName::ALL {
        let ends = if event.ends_job() { "yes" } else { "" };
        writeln!(page, "| `{event}` | {} | {} | {ends} |", event.meaning().trim(), event.data_fields())
            .unwrap();
    }
    for (head, kind) in [(SPANS, Kind::Span), (ATTRIBUTES, Kind::Attribute), (METRICS, Kind::Metric)] {
        page.push_str(head);
        for name in names::ALL.iter().filter(|name| name.kind == kind) {
            writeln!(page, "| `{}` | {} |", name.name, name.meaning).unwrap();
        }
    }
    page
}
