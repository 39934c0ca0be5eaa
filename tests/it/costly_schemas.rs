//! Schemas and patterns that would cost too much time or memory are refused, and delay no other request.

use reqwest::StatusCode;
use serde_json::{Map, Value, json};
use turnstone_tests::model_server::Reply;
use turnstone_tests::{Fleet, OjsServer, wait};

fn job(schema: &Value) -> Value {
    json!({"type": "agent.x", "args": ["hi"], "ext_agent_model": "m", "ext_agent_output_schema": schema})
}

/// A schema with this many patterns that each expand to 50 Unicode classes.
fn patterns(count: usize) -> Value {
    let each: Vec<Value> = (0..count).map(|at| json!({"pattern": format!(r"\p{{L}}{{50}}a{at}")})).collect();
    json!({"anyOf": each})
}

/// Definitions that each name the next one twice.
fn doubling() -> Value {
    let mut definitions = Map::new();
    for at in 0..40 {
        let next = json!({"$ref": format!("#/$defs/d{}", at + 1)});
        definitions.insert(format!("d{at}"), json!({"allOf": [next, next]}));
    }
    definitions.insert("d40".to_owned(), json!({"type": "string"}));
    json!({"$ref": "#/$defs/d0", "$defs": definitions})
}

#[tokio::test]
async fn a_costly_schema_is_refused_at_every_endpoint() {
    let server = OjsServer::over(Fleet::builder().workers(0).start().await);
    let tool = |schema: &Value| {
        let tools = json!([{"name": "t", "description": "d", "parameters": schema}]);
        json!({"type": "agent.x", "args": ["hi"], "ext_agent_model": "m", "ext_agent_tools": tools})
    };
    let long = json!({"pattern": r"\p{L}{5000}"});
    let big = json!({"description": "x".repeat(70_000)});
    for (schema, words) in [
        (&patterns(2_000), "at most 65536"),
        (&patterns(100), "too large together"),
        (&long, "too large together"),
        (&doubling(), "multiply"),
        (&big, "at most 65536"),
    ] {
        for body in [job(schema), tool(schema)] {
            let refused = server.post("/ojs/v1/jobs", &body).await.expect(400);
            assert!(refused.text.contains("cannot be used"), "{}", refused.text);
            // The patterns of a request are counted before its schemas are measured.
            let said = refused.text.contains(words) || refused.text.contains("too large together");
            assert!(said, "{words}: {}", refused.text);
        }
        let registered = server.put("/ojs/v1/admin/schemas/a.b/1", &json!({"schema": schema})).await;
        assert_eq!(registered.status, 400, "{}", registered.text);
    }
    // Each job of this batch is allowed by itself.
    let jobs: Vec<Value> =
        (0..100).map(|at| job(&json!({"pattern": format!(r"\p{{L}}{{100}}b{at}")}))).collect();
    server.post("/ojs/v1/jobs", &jobs[0]).await.expect(201);
    let refused = server.post("/ojs/v1/jobs/batch", &json!({"jobs": jobs})).await.expect(400);
    assert!(refused.text.contains("too large together"), "{}", refused.text);
    // The same schema is counted once, however many jobs name it.
    let same: Vec<Value> = (0..100).map(|_| jobs[0].clone()).collect();
    server.post("/ojs/v1/jobs/batch", &json!({"jobs": same})).await.expect(201);
    server.end().await;
}

#[tokio::test]
async fn an_agent_whose_patterns_cost_too_much_is_refused() {
    let server = OjsServer::over(Fleet::builder().workers(0).start().await);
    let head = "kind: \"openagentspec:v1/agent\"\nname: desk\ndescription: d\nintent: i\nowner: tests\n";
    let with = |pattern: &str| {
        let assertion = format!("assertion: 'user.id.matches({pattern})'");
        format!("{head}capabilities: {{search: {{output_restriction: {{{assertion}}}}}}}\n")
    };
    for (pattern, words) in [(r#""(\\p{L}{50}){50}""#, "too large"), ("user.email", "between quotes")] {
        let refused = server
            .send(reqwest::Method::POST, "/agents", &[("content-type", "application/yaml")], with(pattern))
            .await;
        assert_eq!(refused.status, 422, "{}", refused.text);
        assert!(refused.text.contains(words), "{pattern}: {}", refused.text);
    }
    server.end().await;
}

/// The runtime has one thread: blocking work would delay every request.
#[tokio::test]
async fn other_requests_are_answered_while_schemas_compile() {
    let fleet = Fleet::builder().workers(0).start().await;
    let http = turnstone_tests::http::client();
    let jobs: Vec<Value> =
        (0..40).map(|at| job(&json!({"pattern": format!(r"\p{{L}}{{15}}c{at}")}))).collect();
    let costly = http.post(format!("{}/ojs/v1/jobs/batch", fleet.url)).json(&json!({"jobs": jobs}));
    let costly = tokio::spawn(costly.send());
    // A probe that waits for the schemas ends after them; the first few may have ended before.
    let mut answered = 0;
    while !costly.is_finished() {
        let probe = http.get(format!("{}/livez", fleet.url)).send();
        assert_eq!(wait::output("the probe", probe).await.unwrap().status(), StatusCode::OK);
        answered += 1;
    }
    assert!(answered > 20, "{answered} probes were answered while the schemas compiled");
    assert_eq!(wait::output("the batch", costly).await.unwrap().unwrap().status(), StatusCode::CREATED);
    fleet.end().await;
}

#[tokio::test]
async fn an_answer_that_multiplies_the_steps_of_its_schema_is_refused() {
    let nested = (0..60).fold(json!({}), |inner, _| json!({"x": inner})).to_string();
    let fleet = Fleet::builder().model(move |_| Reply::text(&nested)).start().await;
    let mut body = job(&json!({
        "type": "object",
        "allOf": [{"properties": {"x": {"$ref": "#"}}}, {"patternProperties": {"x": {"$ref": "#"}}}],
    }));
    body["options"] = json!({"retry": {"max_attempts": 1}});
    let id = fleet.push(&body).await;
    let done = fleet.settled(&id).await;
    assert_eq!(done["error"]["code"], "AGENT_OUTPUT_SCHEMA_VIOLATION", "{done:#}");
    assert!(done["error"].to_string().contains("references multiply"), "{done:#}");
    fleet.end().await;
}
