//! `[tool_rules]`: who may call a tool, and the restrictions of every call, also of jobs without an agent.

use crate::stores::on_stores;
use crate::tools::{parrot, with_servers};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use turnstone_domain::JobState;
use turnstone_tests::documents::oas;
use turnstone_tests::model_server::{newest, offered, outcomes};
use turnstone_tests::{Backend, Fleet, Reply};

on_stores!(
    everywhere: [],
    sqlite_first: [
        an_assertion_of_a_tool_holds_for_every_job,
        a_review_of_a_tool_holds_for_a_job_without_an_agent,
        reviews_of_the_agent_and_of_the_tool_are_both_needed,
        an_output_is_withheld_until_the_tools_reviewer_approves,
        others_have_no_such_tool,
        a_guardrail_calls_no_restricted_tool,
        an_imported_agent_is_none_of_this_server,
    ],
);

const BOOK: &str = "capabilities: {book: {user_identity: false}}\n";

/// A model that books for the price in its input, and repeats the outcome.
fn books(request: &Value) -> Reply {
    match outcomes(request) {
        0 => Reply::call("book", json!({"price": newest(request).parse::<i64>().unwrap_or(1)})),
        _ => {
            let messages = request["messages"].as_array().unwrap();
            Reply::text(messages.last().unwrap()["content"].as_str().unwrap_or_default())
        }
    }
}

async fn fleet(backend: Backend, rules: Value) -> Fleet {
    Fleet::builder().on(backend).model(books).tool_rules(rules).start().await
}

/// A job without an agent that names the tool.
fn bare(price: &str) -> Value {
    json!({"type": "booker", "args": [price], "ext_agent_model": "test/m", "ext_agent_tools": [{"name": "book"}]})
}

fn of_agent(agent: &str, price: &str) -> Value {
    json!({"type": "agent.book", "args": [price], "meta": {"agent": agent, "user": {"id": "ann"}},
           "ext_agent_token_budget": 100_000})
}

async fn pushed(fleet: &Fleet, tenant: &str, job: &Value) -> String {
    let mut job = job.clone();
    job["meta"]["tenant_id"] = tenant.into();
    let (status, body) = fleet.post("/ojs/v1/jobs", &job).await;
    assert_eq!(status, StatusCode::CREATED, "{body}");
    body["job"]["id"].as_str().unwrap().to_owned()
}

/// Returns the open review of a job.
async fn review(fleet: &Fleet, job: &str) -> Value {
    fleet.wait_for(job, &[JobState::Pending]).await;
    fleet.get("/reviews?state=open").await["items"][0].clone()
}

async fn decide(fleet: &Fleet, review: &Value, word: &str, by: &str) {
    let path = format!("/reviews/{}/{word}", review["id"].as_str().unwrap());
    let (status, body) = fleet.post(&path, &json!({"by": by})).await;
    assert_eq!(status, StatusCode::OK, "{body}");
}

/// The rule is the same for a job without an agent, an OpenAgentSpec agent and an OSSA manifest.
async fn an_assertion_of_a_tool_holds_for_every_job(backend: Backend) {
    let rules = json!({"book": {"input_restriction": {"assertion": "recent.book.inputs.price < 500"}}});
    let fleet = fleet(backend, rules).await;
    fleet.register(oas("booker", BOOK)).await;
    let manifest = "apiVersion: ossa/v0.2.9\nkind: Agent\nmetadata: {name: desk, version: 1.0.0}\nspec:\n  role: You book.\n  \
                    llm: {provider: openai, model: m}\n  tools: [{type: function, name: book}]\n";
    fleet.register(manifest).await;
    let jobs: [&dyn Fn(&str) -> Value; 3] =
        [&bare, &|price| of_agent("booker", price), &|price| of_agent("desk", price)];
    for (number, job) in jobs.iter().enumerate() {
        let done = fleet.push(&job("900")).await;
        let done = fleet.settled(&done).await;
        assert!(done["result"].as_str().is_some_and(|text| text.contains("does not hold")), "{done:#}");
        assert_eq!(fleet.tools.calls().len(), number);
        let done = fleet.push(&job("400")).await;
        let done = fleet.settled(&done).await;
        assert_eq!(done["state"], "completed", "{done:#}");
        assert_eq!(fleet.tools.calls().len(), number + 1);
    }
    fleet.end().await;
}

async fn a_review_of_a_tool_holds_for_a_job_without_an_agent(backend: Backend) {
    let fleet = fleet(backend, json!({"book": {"input_restriction": {"require_review": "cem"}}})).await;
    let id = fleet.push(&bare("7")).await;
    let asked = review(&fleet, &id).await;
    assert_eq!((&asked["reviewer"], &asked["question"]["tool_rules"]), (&json!("cem"), &json!("book")));
    assert_eq!(asked["question"]["inputs"], json!({"price": 7}));
    assert!(fleet.tools.calls().is_empty());
    decide(&fleet, &asked, "approve", "cem").await;
    fleet.wait_for(&id, &[JobState::Completed]).await;
    assert_eq!(fleet.tools.calls().len(), 1);

    let id = fleet.push(&bare("8")).await;
    decide(&fleet, &review(&fleet, &id).await, "reject", "cem").await;
    let done = fleet.settled(&id).await;
    assert_ne!(done["state"], "completed", "{done:#}");
    assert_eq!(fleet.tools.calls().len(), 1);
    fleet.end().await;
}

async fn reviews_of_the_agent_and_of_the_tool_are_both_needed(backend: Backend) {
    let fleet = fleet(backend, json!({"book": {"input_restriction": {"require_review": "cem"}}})).await;
    let own = "capabilities: {book: {user_identity: false, input_restriction: {require_review: ben}}}\n";
    fleet.register(oas("booker", own)).await;
    let id = fleet.push(&of_agent("booker", "7")).await;
    for reviewer in ["ben", "cem"] {
        fleet
            .until(reviewer, async || {
                fleet.get("/reviews?state=open").await["items"][0]["reviewer"] == reviewer
            })
            .await;
        assert!(fleet.tools.calls().is_empty());
        decide(&fleet, &review(&fleet, &id).await, "approve", reviewer).await;
    }
    fleet.wait_for(&id, &[JobState::Completed]).await;
    assert_eq!(fleet.tools.calls().len(), 1);
    fleet.end().await;
}

/// The review also holds for the worker that takes over.
async fn an_output_is_withheld_until_the_tools_reviewer_approves(backend: Backend) {
    let rules = json!({"book": {"output_restriction": {"require_review": "cem"}}});
    let mut fleet = fleet(backend, rules).await;
    let id = fleet.push(&bare("4711")).await;
    let asked = review(&fleet, &id).await;
    assert_eq!(asked["question"]["outputs"]["echo"]["price"], 4711);
    let events = fleet.get(&format!("/ojs/v1/jobs/{id}/events")).await.to_string();
    assert!(!events.contains("\"echo\""), "{events}");
    fleet.stop_workers().await;
    fleet.add_worker(4);
    assert_eq!((fleet.tools.calls().len(), fleet.models.count()), (1, 1));
    decide(&fleet, &asked, "approve", "cem").await;
    let done = fleet.wait_for(&id, &[JobState::Completed]).await;
    assert!(done["result"].to_string().contains("echo"), "{done:#}");
    assert_eq!((fleet.tools.calls().len(), fleet.models.count()), (1, 2));
    fleet.end().await;
}

/// A tool of a tenant's agent is unknown to others: when a document is registered, when tools are offered, and when one is
/// called.
async fn others_have_no_such_tool(backend: Backend) {
    let rules = json!({"book": {"tenants": ["acme"], "agents": ["booker"]}});
    let fleet = fleet(backend, rules).await;
    fleet.register(oas("booker", BOOK)).await;
    for (name, document) in [
        ("desk", oas("desk", BOOK)),
        ("guard", oas("guard", "guardrails: {input: {tool_name: book, assertion: \"true\"}}\n")),
    ] {
        let (status, answer) = fleet.send(Method::POST, "/agents", document).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{name}: {answer}");
        let said = answer["error"]["details"]["problems"][0]["message"].as_str().unwrap().to_owned();
        assert!(said.contains("there is no tool"), "{said}");
    }
    // A reference to a tool that is not there is accepted on request, and the call of it fails.
    let (status, answer) = fleet.send(Method::POST, "/agents?allow_unresolved=true", oas("desk", BOOK)).await;
    assert_eq!(status, StatusCode::CREATED, "{answer}");

    let id = pushed(&fleet, "acme", &of_agent("booker", "1")).await;
    fleet.wait_for(&id, &[JobState::Completed]).await;
    assert_eq!((offered(&fleet.models.calls()[0].request), fleet.tools.calls().len()), (vec!["book"], 1));
    // The type of a job without an agent is no name of an agent.
    for (tenant, job) in [
        ("beta", of_agent("booker", "1")),
        ("", of_agent("booker", "1")),
        ("acme", of_agent("desk", "1")),
        ("acme", bare("1")),
    ] {
        let seen = fleet.models.count();
        let id = match tenant {
            "" => fleet.push(&job).await,
            tenant => pushed(&fleet, tenant, &job).await,
        };
        let done = fleet.settled(&id).await;
        assert_eq!(offered(&fleet.models.calls()[seen].request), Vec::<&str>::new(), "{tenant} {job}");
        assert!(done["result"].as_str().is_some_and(|text| text.contains("no tool `book`")), "{done:#}");
        let events = fleet.events_named(&id, "tool.unavailable").await;
        assert!(events.iter().all(|event| event.to_string().contains("no tool of this name")), "{events:#?}");
    }
    assert_eq!(fleet.tools.calls().len(), 1);
    fleet.end().await;
}

/// An import brings a definition that no operator of this server has registered, under any name.
async fn an_imported_agent_is_none_of_this_server(backend: Backend) {
    let from = Fleet::builder().on(backend).model(|_| Reply::Status(400)).start().await;
    from.register(oas("booker", BOOK)).await;
    let mut job = of_agent("booker", "1");
    job["options"] = json!({"retry": {"max_attempts": 1, "on_exhaustion": "dead_letter"}});
    let id = from.push(&job).await;
    from.wait_for(&id, &[JobState::Discarded]).await;
    let engagement = from.engagement_of(&id).await;
    let document = turnstone_tests::http::client()
        .get(format!("{}/engagements/{engagement}/export", from.url))
        .send()
        .await
        .unwrap();
    let document = document.text().await.unwrap();
    let to = fleet(backend, json!({"book": {"agents": ["booker"]}})).await;
    to.register(oas("booker", BOOK)).await;
    let (status, body) = to.send(Method::POST, "/engagements/import", document).await;
    assert_eq!(status, StatusCode::CREATED, "{body}");
    let (status, body) = to.post(&format!("/ojs/v1/dead-letter/{id}/retry"), &json!({})).await;
    assert!(status.is_success(), "{body}");
    to.wait_for(&id, &[JobState::Completed]).await;
    assert!(offered(&to.models.calls()[0].request).is_empty());
    assert!(to.tools.calls().is_empty());
    // The same agent, registered here, has the tool.
    let id = to.push(&of_agent("booker", "3")).await;
    to.wait_for(&id, &[JobState::Completed]).await;
    assert_eq!(to.tools.calls().len(), 1);
    from.end().await;
    to.end().await;
}

async fn a_guardrail_calls_no_restricted_tool(backend: Backend) {
    let rules = json!({"search": {"input_restriction": {"require_review": "cem"}}});
    let fleet = fleet(backend, rules).await;
    fleet.register(oas("guarded", "guardrails: {input: {tool_name: search, assertion: \"true\"}}\n")).await;
    let id = fleet.push(&of_agent("guarded", "1")).await;
    let done = fleet.settled(&id).await;
    assert!(done["error"].to_string().contains("[tool_rules] restrict its tool"), "{done:#}");
    assert_eq!((fleet.tools.calls().len(), fleet.models.count()), (0, 0));
    fleet.end().await;
}

/// A rule holds under every name by which documents and jobs reach a tool of an MCP server.
#[tokio::test]
#[cfg_attr(no_python, ignore = "needs Python 3")]
async fn rules_hold_for_the_tools_of_mcp_servers() {
    let script = |request: &Value| match outcomes(request) {
        0 => {
            let name = offered(request).first().copied().unwrap_or("parrot_add").to_owned();
            Reply::call(&name, json!({"a": newest(request).parse::<i64>().unwrap(), "b": 1}))
        }
        _ => {
            Reply::text(request["messages"].as_array().unwrap().last().unwrap()["content"].as_str().unwrap())
        }
    };
    let rules = json!({"parrot.*": {"tenants": ["acme"]},
                       "parrot.add": {"input_restriction": {"assertion": "recent['parrot.add'].inputs.a < 10"}}});
    let mut fleet = Fleet::builder().workers(0).model(script).tool_rules(rules).start().await;
    let servers = json!({"parrot": parrot("well", &json!({"tools": ["add"]}))});
    fleet.add_worker_with(4, |deps| with_servers(deps, &servers));
    let manifest = |name: &str, tool: &str| {
        format!(
            "apiVersion: ossa/v0.2.9\nkind: Agent\nmetadata: {{name: {name}, version: 1.0.0}}\nspec:\n  role: You add.\n  \
             llm: {{provider: openai, model: m}}\n  tools: [{tool}]\n"
        )
    };
    fleet.register(manifest("named", "{type: mcp, server: parrot, capabilities: [add]}")).await;
    fleet.register(manifest("all", "{type: mcp, server: parrot}")).await;
    let bare = |a: &str| json!({"type": "agent.add", "args": [a], "ext_agent_model": "test/m", "ext_agent_tools": [{"name": "parrot.add"}]});
    let jobs: [&dyn Fn(&str) -> Value; 3] = [&bare, &|a| of_agent("named", a), &|a| of_agent("all", a)];
    for job in jobs {
        for (tenant, a, words) in
            [("acme", "41", "does not hold"), ("acme", "4", "5"), ("beta", "4", "no tool")]
        {
            let id = pushed(&fleet, tenant, &job(a)).await;
            let done = fleet.settled(&id).await;
            let said = done["result"].as_str().unwrap_or_default().to_owned();
            assert!(said.contains(words), "{tenant} {a}: {done:#}");
        }
    }
    fleet.end().await;
}
