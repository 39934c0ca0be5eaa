//! Spans: names, nesting, attributes, links and contexts.

use super::{ANSWERED, ASKED, KEY, PARENT, SEARCHED, Site, TRACE, above, named, works};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use turnstone_telemetry::names::{self, Kind};
use turnstone_tests::otlp::Span;
use turnstone_tests::{Reply, model_server};

/// An agent that sets every attribute of a span.
const LEAD: &str = "apiVersion: ossa/v0.2.9
kind: Agent
metadata: {name: lead, version: 1.0.0}
spec:
  role: You are lead.
  llm: {provider: custom, model: m, temperature: 0.5, topP: 0.9, maxTokens: 500}
  tools: [{type: http, capabilities: [{name: search, version: '1.2'}], retry_policy: {max_attempts: 1}}]
  state: {mode: session, ttl_seconds: 60, storage: {type: kv}}
  collaboration: {delegation: {enabled: true, allowed_agents: [scout]}}
  reasoning: {strategy: react, max_steps: 8}
";

/// RS-32, RS-43, facts §6.2 case 7: a turn is a span in the submitter's trace. Its phases, model calls and tool calls
/// are below it, and the commit of state is beside it. Each has the attributes of the conventions that apply.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_is_a_tree_of_spans_in_the_trace_of_its_submitter() {
    let site = Site::start(&[], works).await;
    let meta = json!({"traceparent": format!("00-{TRACE}-{PARENT}-01"),
                      "baggage": "ossa.workflow.id=w-7,ossa.session.id=s-1"});
    let job = site.run("desk", meta).await;
    assert_eq!(job["state"], "completed", "{job:#}");
    let spans = site.spans(1).await;
    assert!(spans.iter().all(|span| span.trace == TRACE), "{spans:#?}");
    assert!(spans.iter().all(|span| span.scope == ("ossa-agent".to_owned(), "0.2.9".to_owned())));
    let invoke = named(&spans, "ossa.agent.invoke")[0];
    assert_eq!(invoke.parent, PARENT);
    assert_eq!((invoke.links[0].trace.as_str(), invoke.links[0].span.as_str()), (TRACE, PARENT));
    assert_eq!(invoke.links[0].attributes["ossa.link.type"], "submission");
    assert_eq!(invoke.attributes["ossa.workflow.id"], "w-7");
    assert_eq!(invoke.resource["service.name"], "turnstone");
    let turns = named(&spans, "ossa.agent.turn");
    assert_eq!(turns.len(), 3);
    assert!(turns.iter().all(|turn| turn.parent == invoke.id));
    let numbers: Vec<&Value> = turns.iter().map(|turn| &turn.attributes["ossa.turn.number"]).collect();
    assert_eq!(numbers, [&json!(1), &json!(2), &json!(3)]);
    let chats = named(&spans, "gen_ai.chat");
    let calls = named(&spans, "ossa.tool.call");
    assert_eq!((chats.len(), calls.len()), (3, 1), "state is no tool of the worker");
    for span in chats.iter().chain(&calls) {
        assert_eq!(above(&spans, span).name, "turnstone.phase");
        assert_eq!(above(&spans, above(&spans, span)).name, "ossa.agent.turn");
    }
    assert_eq!(above(&spans, named(&spans, "http.request")[0]).id, calls[0].id);
    let save = named(&spans, "ossa.state.save")[0];
    assert_eq!(save.parent, invoke.id, "beside the turn");
    for (key, value) in [("ossa.state.mode", json!("session")), ("ossa.state.ttl_seconds", json!(60))] {
        assert_eq!(save.attributes[key], value);
    }
    for span in [invoke, turns[0], chats[0], calls[0], save] {
        for (key, value) in [
            ("ossa.agent.id", json!("desk")),
            ("ossa.agent.name", json!("desk")),
            ("ossa.agent.version", json!("1.4.0")),
            ("ossa.session.id", json!("s-1")),
        ] {
            assert_eq!(span.attributes[key], value, "{key} of {span:#?}");
        }
        assert!(span.attributes["ossa.instance.id"].is_string() && span.error.is_none(), "{span:#?}");
    }
    for span in [turns[0], chats[0], calls[0]] {
        assert_eq!(span.attributes["ossa.interaction.id"], turns[0].attributes["ossa.interaction.id"]);
    }
    assert_ne!(turns[0].attributes["ossa.interaction.id"], turns[1].attributes["ossa.interaction.id"]);
    assert_eq!(chats[1].attributes["ossa.interaction.id"], turns[1].attributes["ossa.interaction.id"]);
    for (key, value) in [
        ("gen_ai.operation.name", json!("chat")),
        ("gen_ai.system", json!("ossa")),
        ("gen_ai.provider.name", json!("custom")),
        ("gen_ai.request.model", json!("m")),
        ("gen_ai.request.temperature", json!(0.5)),
        ("gen_ai.response.id", json!("x")),
        ("gen_ai.response.model", json!("m")),
        ("gen_ai.response.finish_reason", json!("tool_use")),
        ("gen_ai.response.finish_reasons", json!(["tool_use"])),
        ("gen_ai.usage.input_tokens", json!(12)),
        ("gen_ai.usage.output_tokens", json!(7)),
        ("gen_ai.usage.total_tokens", json!(19)),
    ] {
        assert_eq!(chats[0].attributes[key], value, "{key}");
    }
    for (key, value) in [
        ("gen_ai.operation.name", "execute_tool"),
        ("gen_ai.tool.name", "search"),
        ("ossa.tool.name", "search"),
        ("ossa.tool.type", "http"),
        ("ossa.capability.name", "search"),
    ] {
        assert_eq!(calls[0].attributes[key], value, "{key}");
    }
    site.end().await;
}

/// RS-32: spans have every attribute that EVENTS documents, and no other one. The agent uses a model, its state, a
/// failing tool and another agent, and contents are captured.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn spans_carry_the_documented_attributes_and_no_others() {
    let usage = json!({"prompt_tokens": 20, "completion_tokens": 5, "total_tokens": 25,
                       "prompt_tokens_details": {"cached_tokens": 3}, "completion_tokens_details": {"reasoning_tokens": 2}});
    let env = [("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "true")];
    let site = Site::start(&env, move |request| {
        let leads = request["messages"].to_string().contains("You are lead.");
        match (leads, model_server::outcomes(request)) {
            (true, 0) => Reply::call("search", json!({"q": SEARCHED})),
            (true, 1) => Reply::call("search", json!({"q": "again"})),
            (true, 2) => Reply::call("state_set", json!({"key": "k", "value": 1})),
            (true, 3) => Reply::call("scout", json!({"input": "look"})),
            _ => Reply::Odd("done".to_owned(), usage.clone()),
        }
    })
    .await;
    site.tools.fail("search", 1);
    site.register(&super::document("scout", "2.0.0", "")).await;
    site.register(LEAD).await;
    let meta = json!({"traceparent": format!("00-{TRACE}-{PARENT}-01"), "baggage": "ossa.workflow.id=w-7"});
    assert_eq!(site.run("lead", meta).await["state"], "completed");
    // Two claims of the agent that waits for the other one, and one of the other.
    site.spans(3).await;
    let spans = site.end().await.spans();
    let of_span = spans.iter().flat_map(|span| {
        let links = span.links.iter().flat_map(|link| link.attributes.keys());
        span.attributes.keys().chain(links)
    });
    let carried: BTreeSet<&str> = of_span.map(String::as_str).collect();
    let attributes = names::ALL.iter().filter(|name| name.kind == Kind::Attribute).map(|name| name.name);
    // All but the one attribute of a metric.
    let documented: BTreeSet<&str> = attributes.filter(|name| *name != names::TOKEN_TYPE).collect();
    let missing: Vec<_> = documented.difference(&carried).collect();
    let unknown: Vec<_> = carried.difference(&documented).collect();
    assert!(missing.is_empty() && unknown.is_empty(), "missing: {missing:?}; not documented: {unknown:?}");
    let reasons = |span: &&Span| span.name == "gen_ai.chat" && span.attributes["ossa.agent.name"] == "lead";
    let steps = spans.iter().filter(reasons).map(|span| span.attributes["ossa.reasoning.step"].as_i64());
    assert_eq!(steps.flatten().collect::<BTreeSet<_>>(), BTreeSet::from([1, 2, 3, 4, 5]));
    let first = spans.iter().find(reasons).unwrap();
    assert_eq!(first.attributes["ossa.reasoning.strategy"], "react");
    assert_eq!(
        (&first.attributes["ossa.reasoning.max_steps"], &first.attributes["ossa.reasoning.depth"]),
        (&json!(8), &json!(0))
    );
}

/// RS-05, RS-48: a manifest chooses the format of the trace context: B3 or Jaeger. The caller's context in that format
/// is continued and sent to models and tools, and no other format is read.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_manifest_chooses_the_format_of_the_trace_context() {
    let site = Site::start(&[], works).await;
    for (name, format) in [("bee", "b3"), ("hunter", "jaeger")] {
        let chosen = format!(
            "identity: {{instance_id: {{}}, interaction_id: {{}}, propagation: {{trace_context: {format}}}}}"
        );
        site.register(&super::document(name, "1.0.0", &chosen)).await;
    }
    let b3 = json!({"x-b3-traceid": TRACE, "x-b3-spanid": PARENT, "x-b3-sampled": "1"});
    let jaeger = json!({"uber-trace-id": format!("{TRACE}:{PARENT}:0:1")});
    assert_eq!(site.run("bee", b3).await["state"], "completed");
    assert_eq!(site.run("hunter", jaeger).await["state"], "completed");
    let elsewhere = json!({"traceparent": format!("00-{TRACE}-{PARENT}-01")});
    assert_eq!(site.run("hunter", elsewhere).await["state"], "completed");
    let spans = site.spans(3).await;
    let invokes = named(&spans, "ossa.agent.invoke");
    for invoke in &invokes[..2] {
        assert_eq!((invoke.trace.as_str(), invoke.parent.as_str()), (TRACE, PARENT), "{invoke:#?}");
        assert_eq!(invoke.links[0].attributes["ossa.link.type"], "submission");
    }
    assert_ne!(invokes[2].trace, TRACE, "the manifest reads Jaeger only");
    let headers: Vec<_> = [site.models.headers(), site.tools.headers()].concat();
    let carry = |name: &str| headers.iter().filter(|headers| headers.contains_key(name)).count();
    assert_eq!(carry("traceparent"), 0, "{headers:#?}");
    assert!(carry("b3") > 0 && carry("b3") == carry("x-b3-traceid"));
    assert_eq!(carry("b3") + carry("uber-trace-id"), headers.len());
    site.end().await;
}

/// RS-48: the context is sent to models and tools, each below the span of its call, together with the baggage.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn models_and_tools_receive_the_trace() {
    let env = [("OTEL_PROPAGATORS", "tracecontext,baggage,b3")];
    let site = Site::start(&env, works).await;
    let meta = json!({"traceparent": format!("00-{TRACE}-{PARENT}-01"), "tracestate": "v=1",
                      "baggage": "ossa.tenant.id=t-1"});
    site.run("desk", meta).await;
    let spans = site.spans(1).await;
    let ids = |name: &str| named(&spans, name).iter().map(|span| span.id.clone()).collect::<Vec<_>>();
    for (headers, below) in [
        (site.models.headers()[0].clone(), ids("gen_ai.chat")[0].clone()),
        (site.tools.headers()[0].clone(), ids("http.request")[0].clone()),
    ] {
        assert_eq!(headers["traceparent"], format!("00-{TRACE}-{below}-01"));
        assert_eq!(headers["tracestate"], "v=1");
        assert_eq!(headers["baggage"], "ossa.tenant.id=t-1");
        assert_eq!(headers["b3"], format!("{TRACE}-{below}-1"));
    }
    site.end().await;
}

/// RS-05, RS-48: a worker without telemetry passes the submitter's context on. An unreadable context begins a trace
/// instead of failing the job.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_without_telemetry_passes_the_context_on() {
    let site = Site::start(&[("OTEL_SDK_DISABLED", "true")], works).await;
    let sent = format!("00-{TRACE}-{PARENT}-01");
    site.run("desk", json!({"traceparent": sent, "baggage": "a=b"})).await;
    for headers in site.models.headers().iter().chain(&site.tools.headers()) {
        assert_eq!(headers["traceparent"], sent.as_str());
        assert_eq!(headers["baggage"], "a=b");
    }
    let requested = site.models.count();
    assert_eq!(site.run("desk", json!({"traceparent": "00-zz-1-1"})).await["state"], "completed");
    assert!(site.models.headers()[requested..].iter().all(|headers| !headers.contains_key("traceparent")));
    assert_eq!(site.end().await.requests(), 0, "it is switched off");
}

/// RS-32: a failed call is a failed span with the code of the error.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_call_is_a_failed_span() {
    let site = Site::start(&[], |_| Reply::Status(400)).await;
    assert_eq!(site.run("desk", json!({"traceparent": "00-zz-1-1"})).await["state"], "discarded");
    let spans = site.spans(1).await;
    let (invoke, chat) = (named(&spans, "ossa.agent.invoke")[0], named(&spans, "gen_ai.chat")[0]);
    assert_eq!((invoke.parent.as_str(), invoke.links.len()), ("", 0), "a root of its own: {invoke:#?}");
    assert_eq!(invoke.error.as_deref(), Some("LLM_ERROR"), "{invoke:#?}");
    assert_eq!(
        (invoke.attributes["error.type"].clone(), chat.error.as_deref()),
        (json!("LLM_ERROR"), Some("refused"))
    );
    assert_eq!(invoke.events[0].0, "exception");
    assert_eq!(invoke.events[0].1["exception.type"], "LLM_ERROR");
    site.end().await;
}

/// No text of a user, a tool or a model leaves the process, and no secret. With capture their texts do, and still no
/// secret.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn texts_leave_only_when_captured_and_secrets_never() {
    for captured in ["false", "true"] {
        let env = [
            ("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", captured),
            ("OTEL_EXPORTER_OTLP_HEADERS", "x-key=collector-credential"),
            ("TURNSTONE_LOG__FILTER", "turnstone=debug"),
        ];
        let site = Site::start(&env, works).await;
        assert_eq!(site.run("desk", json!({})).await["state"], "completed");
        site.spans(1).await;
        let collector = site.end().await;
        assert!(!collector.records().is_empty() && !collector.readings().is_empty());
        assert!(collector.headers().iter().all(|headers| headers["x-key"] == "collector-credential"));
        for words in [ASKED, SEARCHED, ANSWERED, "You are desk."] {
            assert_eq!(collector.has_bytes(words), captured == "true", "{words} with capture {captured}");
        }
        assert!(!collector.has_bytes(KEY) && !collector.has_bytes("collector-credential"));
    }
}

/// RS-23, RS-32, OAS-35: with capture, no span has text that the agent's filter redacts or an output restriction
/// refuses.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redacted_and_refused_text_is_in_no_span() {
    let env = [("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "true")];
    let script = |request: &Value| match model_server::outcomes(request) {
        0 => Reply::call("search", json!({"q": "of ada@example.org"})),
        _ => Reply::text("Ask ada@example.org, answer-of-the-model"),
    };
    let site = Site::start(&env, script).await;
    site.register(&super::document("careful", "1.0.0", "security: {output_filtering: true}")).await;
    assert_eq!(site.run("careful", json!({})).await["state"], "completed");
    site.register(
        "kind: \"openagentspec:v1/agent\"\nname: strict\ndescription: d\nintent: You are strict.\nowner: tests\n\
         capabilities: {search: {user_identity: false, output_restriction: {assertion: \"false\"}}}\n",
    )
    .await;
    site.run("strict", json!({})).await;
    let spans = site.spans(2).await;
    let results: Vec<Option<&Value>> = named(&spans, "ossa.tool.call")
        .iter()
        .map(|call| call.attributes.get("gen_ai.tool.call.result"))
        .collect();
    assert_eq!(results.len(), 2);
    assert!(results[0].unwrap().as_str().unwrap().contains("redacted email"), "{results:#?}");
    assert_eq!(results[1], None, "this output is not allowed");
    let answer = named(&spans, "gen_ai.chat")[1].attributes["gen_ai.output.messages"].to_string();
    assert!(answer.contains(ANSWERED) && !answer.contains("ada@"), "{answer}");
    for call in spans.iter().filter(|span| span.attributes["ossa.agent.name"] == "careful") {
        assert!(!json!(call.attributes).to_string().contains("ada@"), "{call:#?}");
    }
    site.end().await;
}
