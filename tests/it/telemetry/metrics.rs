//! Metrics by OTLP and for Prometheus.

use super::{Site, TRACE, works};
use crate::program::Program;
use reqwest::Method;
use serde_json::{Value, json};
use turnstone_tests::model_server;
use turnstone_tests::otlp::{Collector, Reading};
use turnstone_tests::{Reply, wait};

const COUNTERS: [(&str, f64); 6] = [
    ("ossa.agent.invocations", 1.0),
    ("ossa.agent.turns", 3.0),
    ("ossa.tokens.input", 34.0),
    ("ossa.tokens.output", 19.0),
    ("ossa.tool.calls", 1.0),
    ("ossa.agent.latency", 3.0),
];

/// Returns the newest value of a metric, as the sum of its series.
fn newest(collector: &Collector, name: &str) -> f64 {
    let readings: Vec<Reading> =
        collector.readings().into_iter().filter(|reading| reading.name == name).collect();
    let mut series: Vec<&Reading> = Vec::new();
    for reading in readings.iter().rev() {
        if series.iter().all(|known| known.attributes != reading.attributes) {
            series.push(reading);
        }
    }
    series.iter().map(|reading| reading.value).sum()
}

/// Facts §6.2 case 6, RS-33: all metrics of OSSA and of OpenTelemetry after one job, the same by OTLP and on
/// `/metrics`. They equal the model's usage, and no label has an id.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_is_counted_by_otlp_and_for_prometheus() {
    let site = Site::start(&[], works).await;
    let job = site.run("desk", json!({"traceparent": format!("00-{TRACE}-b7ad6b7169203331-01")})).await;
    assert_eq!(job["state"], "completed");
    site.collector
        .until("the counters", |collector| {
            COUNTERS.iter().all(|(name, value)| newest(collector, name) == *value)
        })
        .await;
    let readings = site.collector.readings();
    let latency = readings.iter().find(|reading| reading.name == "ossa.agent.latency").unwrap();
    assert_eq!(
        (latency.unit.as_str(), latency.attributes["ossa.agent.version"].clone()),
        ("ms", json!("1.4.0"))
    );
    for name in ["gen_ai.client.operation.duration", "gen_ai.client.token.usage"] {
        assert!(readings.iter().any(|reading| reading.name == name), "{name}");
    }
    let page = site.send(Method::GET, "/metrics", &Value::Null).await.as_str().unwrap().to_owned();
    for line in [
        "ossa_agent_invocations_total{gen_ai_request_model=\"m\",ossa_agent_id=\"desk\",ossa_agent_version=\"1.4.0\"} 1",
        "ossa_agent_turns_total{gen_ai_request_model=\"m\",ossa_agent_id=\"desk\",ossa_agent_version=\"1.4.0\"} 3",
        "ossa_tokens_input_total{gen_ai_request_model=\"m\",ossa_agent_id=\"desk\",ossa_agent_version=\"1.4.0\"} 34",
        "ossa_agent_latency_milliseconds_count{gen_ai_request_model=\"m\",ossa_agent_id=\"desk\",ossa_agent_version=\"1.4.0\"} 3",
    ] {
        assert!(page.lines().any(|shown| shown == line), "{line} is not in\n{page}");
    }
    let allowed = [
        "ossa.agent.id",
        "ossa.agent.version",
        "gen_ai.request.model",
        "ossa.tool.name",
        "error.type",
        "gen_ai.operation.name",
        "gen_ai.provider.name",
        "gen_ai.token.type",
    ];
    for reading in &readings {
        assert!(reading.attributes.keys().all(|key| allowed.contains(&key.as_str())), "{reading:?}");
    }
    for id in [TRACE, job["id"].as_str().unwrap()] {
        assert!(!page.contains(id), "{id} is a label");
    }
    site.end().await;
}

/// The two metrics of errors.
#[ignore = "long: an error of each kind"]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn errors_are_counted_by_their_code() {
    let site = Site::start(&[], |request| match model_server::outcomes(request) {
        0 => Reply::call("search", json!({"q": 1})),
        _ => Reply::Status(400),
    })
    .await;
    site.tools.fail("search", 9);
    assert_eq!(site.run("desk", json!({})).await["state"], "discarded");
    let page = site.send(Method::GET, "/metrics", &Value::Null).await.as_str().unwrap().to_owned();
    let of = |name: &str| {
        page.lines()
            .find(|line| line.starts_with(name))
            .unwrap_or_else(|| panic!("{name}: {page}"))
            .to_owned()
    };
    assert!(of("ossa_agent_errors_total").contains("error_type=\"LLM_ERROR\""), "{page}");
    let failed = of("ossa_tool_errors_total");
    assert!(failed.contains("ossa_tool_name=\"search\"") && !failed.ends_with(" 0"), "{failed}");
    site.end().await;
}

/// RS-33: the names of models, which clients choose, do not increase the number of series.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn made_up_models_do_not_add_series() {
    let site = Site::start(&[], |_| Reply::text("done")).await;
    let mut last = String::new();
    for number in 0..110 {
        let job = json!({"type": "agent.desk", "args": ["x"], "ext_agent_model": format!("model-{number}"),
                         "meta": {"agent": "desk"}});
        let pushed = site.send(Method::POST, "/ojs/v1/jobs", &job).await;
        last = pushed["job"]["id"].as_str().unwrap().to_owned();
    }
    site.followed(&last).await;
    let done = || async {
        let stats = site.send(Method::GET, "/metrics", &Value::Null).await.as_str().unwrap().to_owned();
        let lines: Vec<String> = stats
            .lines()
            .filter(|line| line.starts_with("ossa_agent_turns_total{"))
            .map(str::to_owned)
            .collect();
        let sum: f64 = lines.iter().filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum();
        (sum >= 110.0).then_some(lines)
    };
    let mut seen = None;
    wait::until("every job is counted", async || {
        seen = done().await;
        seen.is_some()
    })
    .await;
    let lines = seen.unwrap();
    assert!(lines.len() <= 101, "{} series", lines.len());
    assert!(lines.iter().any(|line| line.contains("gen_ai_request_model=\"_other\"")), "{lines:#?}");
    site.end().await;
}

/// A worker of a fleet exposes its metrics at an address of its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
async fn a_worker_is_scraped_by_itself() {
    let folder = turnstone_tests::scratch::folder();
    let database = turnstone_tests::servers::Postgres::shared().await.database().await;
    let env = [
        ("DATABASE_URL", database.url.as_str()),
        ("TURNSTONE_WORKER__METRICS_BIND", "127.0.0.1:0"),
        ("TURNSTONE_LOG__FILTER", "info"),
    ];
    let migrated = crate::program::run(folder.path(), &["migrate"], &env).await;
    assert_eq!(migrated.code, Some(0), "{migrated:?}");
    let mut worker = Program::start(folder.path(), &["worker", "--name", "w"], &env);
    let said = worker.warns("metrics are read at ").await;
    let at = said.split("metrics are read at ").nth(1).unwrap().split_whitespace().next().unwrap().to_owned();
    let http = turnstone_tests::http::client();
    let answer = http.get(&at).send().await.unwrap();
    assert_eq!(
        (answer.status().as_u16(), answer.headers()["content-type"].clone()),
        (200, "text/plain".parse().unwrap())
    );
    // An earlier signal would interrupt the start.
    worker.says("turnstone worker w runs").await;
    worker.stop().await;
}
