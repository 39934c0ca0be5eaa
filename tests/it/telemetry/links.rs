//! Span links across the queue.

use super::{Site, TRACE, document, named};
use reqwest::Method;
use serde_json::{Value, json};
use turnstone_tests::{Reply, model_server, wait};

/// RS-A9, facts §6.2 case 7: a delegate has a trace of its own with a link to its caller's span, and the submitter's
/// baggage.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_delegate_links_to_its_caller() {
    let site = Site::start(&[], |request| {
        let role = request["messages"][0]["content"].as_str().unwrap_or_default().to_owned();
        match (role.contains("You are lead."), model_server::outcomes(request)) {
            (true, 0) => Reply::call("scout", json!({"input": "look"})),
            _ => Reply::text("done"),
        }
    })
    .await;
    site.register(&document("scout", "2.0.0", "")).await;
    let may = "collaboration: {delegation: {enabled: true, allowed_agents: [scout]}}";
    site.register(&document("lead", "1.0.0", may)).await;
    let meta =
        json!({"traceparent": format!("00-{TRACE}-b7ad6b7169203331-01"), "baggage": "ossa.workflow.id=w"});
    assert_eq!(site.run("lead", meta).await["state"], "completed");
    // Two claims of the parent, which parks meanwhile, and one of the child.
    let spans = site.spans(3).await;
    let child = named(&spans, "ossa.agent.invoke")
        .into_iter()
        .find(|span| span.attributes["ossa.agent.id"] == "scout")
        .unwrap();
    let handoff = named(&spans, "ossa.delegation.handoff")[0];
    assert_eq!(handoff.attributes["ossa.delegation.target"], "scout");
    assert_eq!(handoff.trace, TRACE);
    assert!(child.trace != TRACE && child.parent.is_empty(), "{child:#?}");
    let link = &child.links[0];
    assert_eq!((&link.trace, &link.span), (&handoff.trace, &handoff.id));
    for (key, value) in [
        ("ossa.link.type", "delegation"),
        ("ossa.link.source_agent", "lead"),
        ("ossa.link.target_agent", "scout"),
    ] {
        assert_eq!(link.attributes[key], value);
    }
    assert_eq!(child.attributes["ossa.parent.agent.id"], "lead");
    assert_eq!(child.attributes["ossa.workflow.id"], "w");
    let parents: Vec<_> = named(&spans, "ossa.agent.invoke")
        .into_iter()
        .filter(|span| span.attributes["ossa.agent.id"] == "lead")
        .collect();
    assert_eq!(parents.len(), 2);
    let resumed = parents.iter().find_map(|parent| {
        let link = parent.links.iter().find(|link| link.attributes["ossa.link.type"] == "resumption")?;
        Some((parent.id.clone(), link.span.clone()))
    });
    let (later, earlier) = resumed.expect("a claim that resumes the turn links to the one that began it");
    assert!(later != earlier && parents.iter().any(|parent| parent.id == earlier));
    site.end().await;
}

/// RS-35, RS-49: the nine events of OSSA as CloudEvents 1.0, over SSE and to a webhook, under OSSA's names. A failed
/// turn is not published as completed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ossas_events_reach_streams_and_webhooks() {
    let env = [("TURNSTONE_WEBHOOKS__ALLOW_PRIVATE", "true")];
    let site = Site::start(&env, |request| {
        let role = request["messages"][0]["content"].as_str().unwrap_or_default().to_owned();
        match (role.contains("You are lead."), model_server::outcomes(request)) {
            (true, 0) => Reply::call("scout", json!({"input": "look"})),
            (false, 0) => Reply::call("search", json!({"q": 1})),
            (false, 1) => Reply::call("state_set", json!({"key": "k", "value": 1})),
            _ => Reply::text("done"),
        }
    })
    .await;
    site.register(&document("scout", "2.0.0", "state: {mode: session}")).await;
    let may = "collaboration: {delegation: {enabled: true, allowed_agents: [scout]}}";
    site.register(&document("lead", "1.0.0", &format!("constraints: {{max_turns: 2}}\n  {may}"))).await;
    site.register(&document("short", "1.0.0", "constraints: {max_turns: 1}")).await;
    let receiver = turnstone_tests::Receiver::start().await;
    let hook = json!({"url": receiver.url, "events": ["io.ossa.*"]});
    site.send(Method::POST, "/ojs/v1/webhooks/subscriptions", &hook).await;
    assert_eq!(site.run("lead", json!({})).await["state"], "completed");
    site.tools.fail("search", 9);
    assert_eq!(site.run("short", json!({})).await["state"], "discarded");
    let url = format!("{}/ojs/v1/events/stream?types=io.ossa.*&after=evt_0.0.0", site.url);
    let reading = turnstone_tests::sse::read(&url, None, |seen| {
        seen.last().is_some_and(|event| event.event == "io.ossa.agent.turn.failed")
    });
    let seen = wait::output("the last event", reading).await;
    let reported: Vec<Value> = seen.iter().map(|event| serde_json::from_str(&event.data).unwrap()).collect();
    for name in [
        "agent.turn.started",
        "agent.turn.completed",
        "agent.turn.failed",
        "tool.called",
        "tool.completed",
        "tool.failed",
        "state.changed",
        "delegation.started",
        "delegation.completed",
    ] {
        let name = format!("io.ossa.{name}");
        assert!(
            reported.iter().any(|event| event["type"] == name.as_str()),
            "{name} is not among {reported:#?}"
        );
    }
    for event in &reported {
        assert_eq!(event["specversion"], "1.0");
        assert!(event["source"].as_str().unwrap().starts_with("/ossa/agents/"), "{event:#}");
        assert_eq!(event["subject"], event["data"]["engagement_id"], "{event:#}");
        assert!(event["data"]["turn_number"].is_i64() && event["id"].is_string(), "{event:#}");
    }
    let started = reported.iter().find(|event| event["type"] == "io.ossa.agent.turn.started").unwrap();
    assert!(started["source"].as_str().unwrap().contains("/ossa/agents/lead/instances/"), "{started:#}");
    assert!(started["data"]["interaction_id"].is_string(), "{started:#}");
    // The turn of `short` with a tool call was its last: it failed, and is not published as completed as well.
    let failed = reported.iter().find(|event| event["type"] == "io.ossa.agent.turn.failed").unwrap();
    let both = reported.iter().filter(|event| event["type"] == "io.ossa.agent.turn.completed").any(|event| {
        event["subject"] == failed["subject"] && event["data"]["turn_number"] == failed["data"]["turn_number"]
    });
    assert!(!both, "{reported:#?}");
    let pairs: std::collections::BTreeSet<String> =
        reported.iter().map(|event| format!("{} {}", event["source"], event["id"])).collect();
    assert_eq!(pairs.len(), reported.len(), "source and id are unique");
    wait::until("the webhook is delivered", async || receiver.count() >= reported.len()).await;
    let sent: Vec<Value> =
        receiver.received().iter().map(turnstone_tests::receiver::Received::json).collect();
    assert!(
        reported.iter().all(|event| sent.contains(event)),
        "the webhook receives the events of the stream"
    );
    // Webhooks are sent in parallel, so the order of arrival varies.
    for sent in receiver.received() {
        assert_eq!(sent.header("x-ojs-event"), sent.json()["type"].as_str().unwrap());
    }
    site.end().await;
}
