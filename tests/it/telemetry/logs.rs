//! Log lines and log records, and an unusable collector.

use super::{Manner, PARENT, Site, TRACE, works};
use reqwest::Method;
use serde_json::{Map, Value, json};
use turnstone_domain::audit::{AuditEntry, AuditHead};
use turnstone_tests::Reply;
use turnstone_tests::otlp::{Collector, Record};

/// Exporters with a timeout of an hour: far longer than any test.
const HOUR: [(&str, &str); 4] = [
    ("OTEL_EXPORTER_OTLP_TIMEOUT", "3600000"),
    ("OTEL_BSP_EXPORT_TIMEOUT", "3600000"),
    ("OTEL_BLRP_EXPORT_TIMEOUT", "3600000"),
    ("OTEL_METRIC_EXPORT_TIMEOUT", "3600000"),
];

/// RS-34: lines inside of spans name their trace and span, in both formats and by OTLP, whether spans are sent or
/// not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn log_lines_have_the_trace_and_the_span() {
    for (format, disabled) in [("json", "false"), ("pretty", "true")] {
        let env = [
            ("TURNSTONE_LOG__FORMAT", format),
            ("TURNSTONE_LOG__FILTER", "turnstone_worker=debug"),
            ("OTEL_SDK_DISABLED", disabled),
        ];
        let mut site = Site::start(&env, works).await;
        site.run("desk", json!({"traceparent": format!("00-{TRACE}-{PARENT}-01")})).await;
        let log = site.program.warns("turn complete").await;
        let line = log.lines().find(|line| line.contains("turn complete")).unwrap();
        let span = if format == "json" {
            let line: Value = serde_json::from_str(line).unwrap();
            assert_eq!(line["trace_id"], TRACE);
            line["span_id"].as_str().unwrap().to_owned()
        } else {
            assert!(line.contains(&format!("trace_id={TRACE} span_id=")), "{line}");
            line.rsplit("span_id=").next().unwrap().to_owned()
        };
        assert_eq!(span.len(), 16, "{line}");
        if disabled == "true" {
            site.end().await;
            continue;
        }
        site.collector
            .until("the record", |collector| {
                collector.records().iter().any(|record| record.body == "turn complete")
            })
            .await;
        let records = site.collector.records();
        let record = records.iter().find(|record| record.body == "turn complete").unwrap();
        assert_eq!((record.trace.as_str(), record.severity.as_str()), (TRACE, "DEBUG"));
        let spans = site.spans(1).await;
        assert!(spans.iter().any(|span| span.id == record.span), "a record is in a span that was sent");
        site.end().await;
    }
}

/// Entries of the audit are sent whole, so that the receiver can verify the chain. The filter of the log does not matter.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn audit_entries_are_log_records() {
    let site = Site::start(&[("TURNSTONE_LOG__FILTER", "error")], works).await;
    site.send(Method::PUT, "/freeze", &json!({"tenant": "acme"})).await;
    site.send(Method::DELETE, "/freeze?tenant=acme", &Value::Null).await;
    let entries = |collector: &Collector| -> Vec<AuditEntry> {
        let records = collector.records().into_iter().filter(|record| record.body == "audited");
        let entry = |record: Record| {
            let mut entry: Map<String, Value> = record.attributes.into_iter().collect();
            let who = entry.remove("who").unwrap();
            entry.insert("principal".to_owned(), who);
            serde_json::from_value(entry.into()).unwrap()
        };
        records.map(entry).collect()
    };
    site.collector.until("the entries", |collector| entries(collector).len() == 3).await;
    let sent = entries(&site.collector);
    let actions: Vec<&str> = sent.iter().map(|entry| entry.action.as_str()).collect();
    assert_eq!(actions, ["POST /agents", "PUT /freeze", "DELETE /freeze"]);
    let head = sent.iter().try_fold(AuditHead::default(), |head, entry| head.followed_by(entry)).unwrap();
    let stored = site.send(Method::GET, "/audit/chain", &Value::Null).await;
    assert_eq!(stored["head"], serde_json::to_value(head).unwrap());
    site.end().await;
}

/// A collector that hangs or is unreachable delays no turn and does not keep the process from ending. The exporters'
/// timeout is an hour, and each of the three signals has one unanswered request at the collector that hangs.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unusable_collector_delays_nothing() {
    let nobody =
        [("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9"), ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")];
    for (manner, env) in [(Manner::Hangs, &HOUR[..]), (Manner::Takes, &nobody[..])] {
        let tiny = [("OTEL_BSP_MAX_QUEUE_SIZE", "4"), ("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "2")];
        let mut site = Site::with(manner, &[&tiny[..], env].concat(), |_| Reply::text("done")).await;
        if manner == Manner::Hangs {
            site.run("desk", json!({})).await;
            site.collector.until("each signal has a request", |collector| collector.requests() == 3).await;
        }
        for _ in 0..10 {
            assert_eq!(site.run("desk", json!({})).await["state"], "completed");
        }
        if manner == Manner::Hangs {
            assert_eq!(site.collector.requests(), 3, "no request was answered or given up");
        }
        if manner == Manner::Takes {
            // At its end the process sends the rest of all three signals.
            site.program.warns("the telemetry collector does not take").await;
            site.program.signal("TERM");
            assert_eq!(site.program.ended().await, Some(0));
            let log = site.program.warned();
            for warning in ["the telemetry collector does not take", "OTLP needs http/protobuf, not grpc"] {
                assert_eq!(log.matches(warning).count(), 1, "it is said once: {log}");
            }
            continue;
        }
        site.end().await;
    }
}
