//! Spans of requests to the API, and the trace context of MCP calls.

use super::{PARENT, Site, TRACE, named, works};
use reqwest::Method;
use serde_json::json;
use turnstone_tests::otlp::Collector;
use turnstone_tests::servers::need_python;
use turnstone_tests::{Reply, model_server};

/// Issue 5, "Telemetry" (W3C context in and out): a request is a span in the trace of its sender. It is named by its
/// method and the template of its path, without ids.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_is_a_span_in_the_trace_of_its_sender() {
    let site = Site::start(&[], works).await;
    let traceparent = format!("00-{TRACE}-{PARENT}-01");
    for path in ["/agents/desk/describe", "/engagements/no-such-id", "/nowhere/no-such-id", "/livez"] {
        let request = site.http.get(format!("{}{path}", site.url)).header("traceparent", &traceparent);
        request.send().await.unwrap();
    }
    // The last span; the earlier ones have arrived as well.
    site.run("desk", json!({})).await;
    let reported = "GET /ojs/v1/jobs/{id}";
    site.collector
        .until("the span of a request", |told_of| !named(&told_of.spans(), reported).is_empty())
        .await;
    let collector = site.end().await;
    let spans = collector.spans();
    for (name, route, status) in [
        ("GET /agents/{name}/describe", json!("/agents/{name}/describe"), 200),
        ("GET /engagements/{id}", json!("/engagements/{id}"), 404),
    ] {
        let found = named(&spans, name);
        assert_eq!(found.len(), 1, "{name}");
        let span = found[0];
        assert_eq!((span.trace.as_str(), span.parent.as_str()), (TRACE, PARENT), "{span:#?}");
        assert_eq!(span.attributes["http.route"], route);
        assert_eq!(span.attributes["http.request.method"], "GET");
        assert_eq!(span.attributes["http.response.status_code"], status);
    }
    let nowhere = named(&spans, "GET");
    assert_eq!((nowhere.len(), nowhere[0].attributes.contains_key("http.route")), (1, false), "{nowhere:#?}");
    assert!(spans.iter().all(|span| !span.name.contains("livez")), "probes are no spans");
    assert!(!collector.has_bytes("no-such-id"), "no span has a client's path");
    assert_eq!(named(&spans, "POST /ojs/v1/jobs").len(), 1);
}

/// RS-48, issue 5 ("W3C context in and out"): an MCP server receives the context in the `_meta` of a call, below the
/// span of the call.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[cfg_attr(no_python, ignore = "needs Python 3")]
async fn an_mcp_server_receives_the_trace_of_a_call() {
    need_python();
    let site = Site::start(&[], |request| match model_server::outcomes(request) {
        0 => Reply::call("parrot_meta", json!({})),
        _ => Reply::text("done"),
    })
    .await;
    let job = json!({"type": "agent.parrot", "args": ["go"], "ext_agent_model": "m",
                     "ext_agent_tools": [{"name": "parrot.meta"}],
                     "meta": {"traceparent": format!("00-{TRACE}-{PARENT}-01"), "tracestate": "v=1"}});
    let pushed = site.send(Method::POST, "/ojs/v1/jobs", &job).await;
    site.followed(pushed["job"]["id"].as_str().unwrap()).await;
    let reported = |collector: &Collector| !named(&collector.spans(), "ossa.tool.call").is_empty();
    site.collector.until("the span of the call", reported).await;
    let spans = site.collector.spans();
    let call = named(&spans, "ossa.tool.call")[0].id.clone();
    let reported = site.models.calls()[1].request["messages"].to_string();
    assert!(reported.contains(&format!("00-{TRACE}-{call}-01")), "{reported}");
    assert!(reported.contains("tracestate") && reported.contains("v=1"), "{reported}");
    site.end().await;
}
