//! The endpoints: definitions as YAML, engagements begun by POST, and their state.

use super::client;
use futures::future::join_all;
use reqwest::{Client, Method, RequestBuilder, Response};
use serde_json::{Value, json};
use turnstone_tests::documents::oas;
use turnstone_tests::{Backend, Fleet, Reply, model_server};

async fn fleet(backend: Backend) -> Fleet {
    let script = |request: &Value| match model_server::outcomes(request) {
        0 if request["tools"].is_array() => Reply::call("search", json!({"q": "x"})),
        _ => Reply::text("found"),
    };
    Fleet::builder().on(backend).workers(1).model(script).start().await
}

fn post(http: &Client, fleet: &Fleet, path: &str, body: impl Into<reqwest::Body>) -> RequestBuilder {
    http.post(format!("{}{path}", fleet.url)).header("content-type", "application/json").body(body)
}

fn location(response: &Response) -> String {
    assert_eq!(response.status(), 303);
    response.headers()["location"].to_str().unwrap().to_owned()
}

/// OAS-02, OAS-17, OAS-66, OAS-67, OAS-69, OAS-70: definitions are registered and replaced, listed once, and read back as they were written.
#[tokio::test]
async fn definitions_are_returned_as_they_were_written() {
    join_all(Backend::ALL.map(async |backend| {
        let fleet = fleet(backend).await;
        let first = oas("desk", "capabilities: {search: {user_identity: False}} # why\n");
        let second = oas("desk", "capabilities: {search: {user_identity: True}}\n");
        let put = async |name: &str, text: &str| {
            let (status, body) = fleet.send(Method::PUT, &format!("/agents/{name}"), text.to_owned()).await;
            (status.as_u16(), body)
        };
        assert_eq!(put("desk", &first).await.0, 201);
        let (status, refused) = put("other", &second).await;
        assert_eq!((status, &refused["error"]["code"]), (422, &json!("validation_error")));
        assert_eq!(put("desk", &second).await.0, 200);
        assert_eq!(fleet.get("/agents").await.as_array().map(Vec::len), Some(1), "one name, one agent");
        let read = client().get(format!("{}/agents/desk", fleet.url)).send().await.unwrap();
        assert_eq!(read.headers()["content-type"], "application/yaml");
        assert_eq!(read.text().await.unwrap(), second);
        let refused = client().get(format!("{}/agents/desk", fleet.url)).header("accept", "application/json");
        assert_eq!(refused.send().await.unwrap().status(), 406);
        let taken = client()
            .get(format!("{}/agents/desk", fleet.url))
            .header("accept", "text/html, application/*;q=0.5");
        assert_eq!(taken.send().await.unwrap().status(), 200);
        fleet.end().await;
    }))
    .await;
}

/// OAS-66: a removed agent is not listed. An agent that others name cannot be removed, and running engagements
/// continue.
#[tokio::test]
async fn removed_agents_are_not_listed() {
    join_all(Backend::ALL.map(async |backend| {
        let fleet = fleet(backend).await;
        let http = client();
        for (name, capability) in [("desk", "search"), ("boss", "desk"), ("judge", "search")] {
            let rest = format!("capabilities: {{{capability}: {{user_identity: False}}}}\n");
            let (status, body) = fleet.send(Method::PUT, &format!("/agents/{name}"), oas(name, &rest)).await;
            assert_eq!(status, 201, "{body}");
        }
        let careful = "capabilities: {search: {input_restriction: {require_review: 'oagent://judge'}}}\n";
        fleet.send(Method::PUT, "/agents/careful", oas("careful", careful)).await;
        let remove = async |path: &str| {
            let (status, body) = fleet.send(Method::DELETE, path, String::new()).await;
            (status.as_u16(), body)
        };
        for (named, by) in [("desk", "boss"), ("judge", "careful")] {
            let (status, body) = remove(&format!("/agents/{named}")).await;
            assert_eq!((status, &body["error"]["details"]["named_by"]), (409, &json!([by])), "{body}");
        }
        assert_eq!(
            fleet.get("/agents").await.as_array().map(Vec::len),
            Some(4),
            "no agent is removed in part"
        );
        let begun =
            post(&http, &fleet, "/agents/desk", json!({"input": "hi"}).to_string()).send().await.unwrap();
        let state = location(&begun);
        assert_eq!(remove("/agents/desk?allow_unresolved=1").await.0, 200);
        assert_eq!(remove("/agents/boss").await, (200, json!({"name": "boss", "deleted": true})));
        assert_eq!(remove("/agents/boss").await.0, 404);
        let refused = post(&http, &fleet, "/agents/desk", json!({"input": "hi"}).to_string()).send().await;
        assert_eq!(refused.unwrap().status(), 404, "no new engagement begins");
        fleet.until("it has ended", async || fleet.get(&state).await["status"] == "completed").await;
        assert_eq!(fleet.get(&state).await["results"]["text"], "found", "a running job continues");
        fleet.end().await;
    }))
    .await;
}

/// Engagements are listed newest first, per agent and per tenant, each once although new ones begin between two
/// pages.
#[tokio::test]
async fn engagements_are_listed_in_pages() {
    join_all(Backend::ALL.map(async |backend| {
        let fleet = fleet(backend).await;
        for name in ["desk", "other"] {
            let (status, _) = fleet.send(Method::PUT, &format!("/agents/{name}"), oas(name, "")).await;
            assert_eq!(status, 201);
        }
        let http = client();
        let begin = async |name: &str| {
            let begun = post(&http, &fleet, &format!("/agents/{name}"), "\"hi\"").send().await.unwrap();
            location(&begun).rsplit('/').next().unwrap().to_owned()
        };
        let mut begun = Vec::new();
        for _ in 0..3 {
            begun.insert(0, begin("desk").await);
        }
        let first = fleet.get("/engagements?agent=desk&limit=2").await;
        let ids = |list: &Value| -> Vec<String> {
            let items = list["items"].as_array().unwrap().iter();
            items.map(|one| one["engagement_id"].as_str().unwrap().to_owned()).collect()
        };
        assert_eq!(ids(&first), begun[..2]);
        let newer = begin("other").await;
        begin("desk").await;
        let cursor = first["pagination"]["next_cursor"].as_str().unwrap();
        let rest = fleet.get(&format!("/engagements?agent=desk&limit=2&cursor={cursor}")).await;
        assert_eq!(ids(&rest), begun[2..]);
        assert_eq!(rest["pagination"], json!({"has_more": false, "next_cursor": null}));
        assert_eq!(ids(&fleet.get("/engagements?agent=other").await), [newer]);
        assert_eq!(ids(&fleet.get("/engagements").await).len(), 5);
        let tenant = http.get(format!("{}/engagements", fleet.url)).header("x-ojs-tenant", "nobody");
        let theirs: Value = tenant.send().await.unwrap().json().await.unwrap();
        assert_eq!(ids(&theirs), Vec::<String>::new());
        let shown = async || fleet.get("/engagements?agent=other").await["items"][0].clone();
        fleet.until("it has ended", async || shown().await["job_state"] == "completed").await;
        let one = shown().await;
        assert_eq!((&one["turns"], &one["user"]["id"]), (&json!(1), &json!("anonymous")));
        fleet.end().await;
    }))
    .await;
}

/// OAS-03, OAS-04, OAS-07: a name of 253 characters is accepted. One of 254 and an invalid one are refused, and
/// nothing is registered.
#[tokio::test]
async fn a_name_has_253_characters_and_no_more() {
    join_all(Backend::ALL.map(async |backend| {
        let fleet = fleet(backend).await;
        let (longest, too_long) = ("n".repeat(253), "n".repeat(254));
        let names = [&*too_long, "a..b", "a.-b", "a-.b", "a_b", "Ab", "a/b"].map(|name| (name, 422_u16));
        for (name, status) in names.into_iter().chain([(&*longest, 201)]) {
            let (got, body) = fleet.send(Method::POST, "/agents", oas(name, "")).await;
            assert_eq!(got, status, "{name}: {body}");
        }
        let listed = fleet.get("/agents").await;
        assert_eq!((listed.as_array().map(Vec::len), &listed[0]["name"]), (Some(1), &json!(longest)));
        let begun = post(&client(), &fleet, &format!("/agents/{longest}"), "\"hi\"").send().await.unwrap();
        let state = location(&begun);
        fleet.until("it has ended", async || fleet.get(&state).await["status"] == "completed").await;
        fleet.end().await;
    }))
    .await;
}

/// OAS-21: a missing reference is refused and nothing is stored, unless the caller defers it: then its calls fail.
#[tokio::test]
async fn missing_references_are_refused_unless_deferred() {
    let fleet = Fleet::builder()
        .workers(1)
        .model(|request| match model_server::outcomes(request) {
            0 => Reply::call("later", json!({"input": "x"})),
            _ => Reply::text("went on"),
        })
        .start()
        .await;
    let text = oas("desk", "capabilities: {later: {}, search: {}}\n");
    let (status, refused) = fleet.send(Method::POST, "/agents", text.clone()).await;
    assert_eq!(
        (status.as_u16(), &refused["error"]["details"]["problems"][0]["rule"]),
        (422, &json!("OAS-21"))
    );
    assert_eq!(fleet.get("/agents").await, json!([]), "half of it was registered");
    let (status, taken) = fleet.send(Method::POST, "/agents?allow_unresolved=1", text).await;
    assert_eq!((status.as_u16(), &taken["warnings"][0]["rule"]), (201, &json!("OAS-A17")));
    let job = json!({"type": "a.b", "args": ["go"], "meta": {"agent": "desk", "user": {"id": "u-1"}}});
    let id = fleet.push(&job).await;
    assert_eq!(fleet.settled(&id).await["result"], "went on");
    assert!(fleet.tools.calls().is_empty());
    let odd = fleet.send(Method::POST, "/agents?allow_unresolved=maybe", oas("odd", "")).await;
    assert_eq!(odd.0.as_u16(), 400);
    fleet.end().await;
}

/// OAS-19, OAS-22, OAS-24, OAS-68, OAS-72, OAS-73, OAS-74, OAS-75, OAS-A16: each POST begins an engagement and is
/// answered by 303 with a relative address. The state there has the text and the exposed values, and nothing of the
/// history.
#[tokio::test]
async fn a_post_begins_an_engagement_that_can_be_followed() {
    join_all(Backend::ALL.map(async |backend| {
        let fleet = fleet(backend).await;
        let exposes = "exposes: {found: 'recent.search.outputs.tool', hidden: 'recent.book.outputs'}\n";
        let text = oas(
            "desk",
            &format!("capabilities: {{search: {{user_identity: false}}, book: {{}}}}\n{exposes}"),
        );
        fleet.register(text).await;
        let http = client();
        let metadata = json!({"input": "hi", "metadata": {"user": {"id": "u-9"}, "agent": "somebody-else"}});
        let mut begun = Vec::new();
        for body in [
            "\"hi\"".to_owned(),
            "\"hi\"".to_owned(),
            metadata.to_string(),
            json!({"text": "hi"}).to_string(),
        ] {
            begun.push(location(&post(&http, &fleet, "/agents/desk", body).send().await.unwrap()));
        }
        begun.iter().for_each(|place| assert!(place.starts_with("/engagements/"), "{place}"));
        let ids: std::collections::BTreeSet<_> = begun.iter().collect();
        assert_eq!(ids.len(), 4, "two equal requests are two engagements");
        for place in &begun {
            fleet.until("it has ended", async || fleet.get(place).await["status"] == "completed").await;
            let state = fleet.get(place).await;
            assert_eq!(state["agent"], "desk");
            assert_eq!(state["results"]["text"], "found", "{state:#}");
            assert_eq!(state["results"]["hidden"], Value::Null);
            for inner in ["recent", "history", "engagement"] {
                assert!(state.get(inner).is_none(), "{state:#}");
            }
            for field in ["awaiting", "error"] {
                assert_eq!(state[field], Value::Null, "{state:#}");
            }
        }
        assert_eq!(fleet.get(&begun[2]).await["user"]["id"], "u-9");
        check_prompt(&fleet.models.calls()[0].request);
        fleet.end().await;
    }))
    .await;
}

/// Asserts that the model receives the intent, and of each tool its name, description and parameters.
fn check_prompt(request: &Value) {
    let prompt = request["messages"][0]["content"].as_str().unwrap();
    assert!(prompt.starts_with("You are desk."), "{request:#}");
    let tools: Vec<&Value> =
        request["tools"].as_array().unwrap().iter().map(|tool| &tool["function"]).collect();
    for (tool, name) in tools.iter().zip(["search", "book"]) {
        assert_eq!(
            (&tool["name"], &tool["description"]),
            (&json!(name), &json!(format!("the test tool {name}")))
        );
        assert_eq!(tool["parameters"]["type"], "object", "{tool:#}");
    }
    assert_eq!(tools.len(), 2);
}

/// OAS-73: an invalid input is refused with its own status, and begins no engagement.
#[tokio::test]
async fn an_invalid_input_begins_nothing() {
    let fleet = Fleet::builder().workers(0).start().await;
    fleet.register(oas("desk", "")).await;
    let http = client();
    for (path, body, status) in [
        ("/agents/nobody", "\"hi\"", 404),
        ("/agents/desk", "{\"input\": ", 400),
        ("/agents/desk", "", 400),
        ("/agents/desk", "[\"hi\"]", 400),
        ("/agents/desk", "{}", 400),
        ("/agents/desk", "{\"input\": 7}", 400),
        ("/agents/desk", "{\"input\": \"a\", \"text\": \"b\"}", 400),
        ("/agents/desk", "{\"input\": \"a\", \"inputs\": []}", 400),
        ("/agents/desk", "{\"input\": \"a\", \"metadata\": 3}", 400),
        ("/agents/desk", "{\"input\": \"a\", \"metadata\": {\"user\": \"me\"}}", 400),
    ] {
        let answer = post(&http, &fleet, path, body).send().await.unwrap();
        assert_eq!(answer.status().as_u16(), status, "{path} {body}");
    }
    let whose = post(&http, &fleet, "/agents/desk", "{\"input\": \"a\", \"metadata\": {\"user\": \"me\"}}");
    let refused: Value = whose.send().await.unwrap().json().await.unwrap();
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(message.starts_with("metadata.user must be an object"), "as it was sent: {refused:#}");
    assert_eq!(refused["error"]["details"]["field"], "metadata.user");
    let typed = |kind: &str| {
        http.post(format!("{}/agents/desk", fleet.url)).header("content-type", kind).body("\"hi\"")
    };
    assert_eq!(typed("text/plain").send().await.unwrap().status(), 415);
    let picky = post(&http, &fleet, "/agents/desk", "\"hi\"").header("accept", "text/html");
    assert_eq!(picky.send().await.unwrap().status(), 406);
    for name in ["turnstone-delegation-depth", "turnstone-token-budget", "turnstone-user"] {
        let forged = post(&http, &fleet, "/agents/desk", "\"hi\"").header(name, "1");
        assert_eq!(forged.send().await.unwrap().status(), 403, "{name} is believed from peers only");
    }
    assert_eq!(fleet.number("SELECT count(*) FROM jobs").await, 0);
    fleet.end().await;
}

/// OAS-74: a caller's key makes a repeated request the same engagement, and another input under it is refused.
#[tokio::test]
async fn a_repeated_request_with_a_key_is_the_same_engagement() {
    join_all(Backend::ALL.map(async |backend| {
        let fleet = Fleet::builder().on(backend).workers(0).start().await;
        for name in ["desk", "other"] {
            fleet.register(oas(name, "")).await;
        }
        let http = client();
        let ask = async |agent: &str, key: &str, text: &str| {
            let body = json!(text).to_string();
            post(&http, &fleet, &format!("/agents/{agent}"), body)
                .header("idempotency-key", key)
                .send()
                .await
                .unwrap()
        };
        let first = location(&ask("desk", "k-1", "hi").await);
        assert_eq!(location(&ask("desk", "k-1", "hi").await), first);
        assert_ne!(location(&ask("desk", "k-2", "hi").await), first);
        assert_ne!(location(&ask("other", "k-1", "hi").await), first);
        assert_eq!(ask("desk", "k-1", "ho").await.status(), 409);
        assert_eq!(ask("desk", " ", "hi").await.status(), 400);
        fleet.end().await;
    }))
    .await;
}
