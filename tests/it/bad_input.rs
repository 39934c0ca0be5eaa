//! Bad input is answered with a 4xx, a stable code, a sentence and a hint. Nothing is stored, and the server
//! continues.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use turnstone_tests::{Fleet, wait};

/// A bad request: its description, path and body, with the status and code of its refusal.
struct Bad {
    what: String,
    path: &'static str,
    body: Vec<u8>,
    status: u16,
    code: &'static str,
}

impl Bad {
    fn job(what: impl Into<String>, body: impl Into<Vec<u8>>, status: u16, code: &'static str) -> Self {
        Self { what: what.into(), path: "/ojs/v1/jobs", body: body.into(), status, code }
    }

    fn agent(what: impl Into<String>, body: impl Into<Vec<u8>>) -> Self {
        let (status, code) = (422, "validation_error");
        Self { what: what.into(), path: "/agents", body: body.into(), status, code }
    }
}

/// A valid agent job with one changed field.
fn job_with(field: &str, value: Value) -> String {
    let mut job = json!({"type": "agent.x", "args": ["hi"], "ext_agent_model": "m"});
    job[field] = value;
    job.to_string()
}

const AGENT: &str = "kind: \"openagentspec:v1/agent\"\nname: desk\ndescription: Finds things.\n\
                     intent: You find things.\nowner: tests\n";

fn agent_with(more: &str) -> String {
    format!("{AGENT}{more}")
}

fn restricted(expression: &str) -> String {
    let assertion = Value::from(expression);
    agent_with(&format!(
        "capabilities:\n  search:\n    user_identity: false\n    input_restriction:\n      assertion: {assertion}\n"
    ))
}

fn manifest(more: &str) -> String {
    format!(
        "apiVersion: ossa/v0.2.9\nkind: Agent\nmetadata: {{name: scout, version: 1.0.0}}\nspec:\n  role: You scout.\n{more}"
    )
}

/// Sends every request and compares its refusal. Afterwards the store is unchanged and the server still works.
async fn refuse(all: Vec<Bad>) {
    let fleet = Fleet::builder().start().await;
    let mut wrong = Vec::new();
    for Bad { what, path, body, status, code } in all {
        let (got, answer) = wait::output(&what, fleet.send(Method::POST, path, body)).await;
        let error = &answer["error"];
        let sentence = error["message"].as_str().unwrap_or_default();
        let hint = error["hint"].as_str().unwrap_or_default();
        if got.as_u16() != status || error["code"] != code || sentence.len() < 10 || hint.len() < 10 {
            wrong.push(format!("{what}: expected {status} {code}, got {got} {answer}"));
        }
        if answer.to_string().len() > 20_000 {
            wrong.push(format!("{what}: the answer has {} bytes", answer.to_string().len()));
        }
    }
    assert!(wrong.is_empty(), "{} answers are wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert_nothing_stored(&fleet).await;
    let id = fleet.push(&serde_json::from_str(&job_with("args", json!(["hi"]))).unwrap()).await;
    assert_eq!(fleet.settled(&id).await["state"], "completed", "a good job still runs");
    fleet.end().await;
}

async fn assert_nothing_stored(fleet: &Fleet) {
    assert_eq!(fleet.get("/ojs/v1/admin/jobs").await["pagination"]["total"], 0);
    assert_eq!(fleet.get("/agents").await, json!([]));
    for table in ["jobs", "engagements", "agents", "journal", "totals", "agent_definitions"] {
        let sql = format!("SELECT count(*) FROM {table}");
        assert_eq!(fleet.number(&sql).await, 0, "{table} has rows");
    }
}

#[tokio::test]
async fn a_body_that_is_no_json_object_is_refused() {
    let deep = |open: &str, close: &str| format!("{}{}", open.repeat(10_000), close.repeat(10_000));
    let deep_args = format!("{{\"type\": \"agent.x\", \"args\": {}}}", deep("[", "]"));
    let deep_meta = format!(
        "{{\"type\": \"agent.x\", \"args\": [], \"meta\": {}1{}}}",
        "{\"a\":".repeat(10_000),
        "}".repeat(10_000)
    );
    let mut all = Vec::new();
    for (what, body) in [
        ("nothing", Vec::new()),
        ("half an object", b"{\"type\": \"agent.x\"".to_vec()),
        ("words", b"please run".to_vec()),
        ("a trailing comma", b"{\"type\": \"agent.x\", \"args\": [],}".to_vec()),
        ("two objects", b"{\"type\": \"a.b\", \"args\": []}{}".to_vec()),
        ("a list", b"[]".to_vec()),
        ("a number", b"7".to_vec()),
        ("null", b"null".to_vec()),
        ("bytes that are not UTF-8", b"{\"type\": \"agent.\xff\", \"args\": []}".to_vec()),
        ("10,000 lists", deep("[", "]").into()),
        ("10,000 open lists", "[".repeat(10_000).into()),
        ("10,000 deep args", deep_args.into()),
        ("10,000 deep meta", deep_meta.into()),
    ] {
        all.push(Bad::job(what, body, 400, "invalid_payload"));
    }
    let twice = "{\"type\": \"agent.x\", \"type\": \"agent.y\", \"args\": []}";
    all.push(Bad::job("a field given twice", twice, 400, "invalid_request"));
    refuse(all).await;
}

#[tokio::test]
async fn wrong_fields_of_the_envelope_are_refused() {
    let mut all = Vec::new();
    for (field, values) in [
        ("type", vec![json!(null), json!(5), json!(""), json!("No Type"), json!("a".repeat(300))]),
        ("args", vec![json!(null), json!({}), json!("hi")]),
        (
            "id",
            vec![
                json!(1),
                json!("7"),
                json!("../x"),
                json!("0190a7b2-0000-4000-8000-000000000001"),
                json!("0190A7B2-0000-7000-8000-000000000001"),
                json!("'; DROP TABLE jobs; --"),
            ],
        ),
        (
            "options",
            vec![
                json!([]),
                json!("x"),
                json!({"queue": 5}),
                json!({"queue": "No Queue"}),
                json!({"priority": "urgent"}),
                json!({"timeout_ms": -1}),
            ],
        ),
        ("queue", vec![json!(5), json!("No Queue"), json!("q".repeat(300))]),
        ("meta", vec![json!(7), json!([])]),
    ] {
        for value in values {
            all.push(Bad::job(format!("{field} = {value}"), job_with(field, value), 400, "invalid_request"));
        }
    }
    for version in ["0.9", "2.0", "99"] {
        let body = job_with("specversion", json!(version));
        all.push(Bad::job(format!("specversion {version}"), body, 422, "unsupported"));
    }
    all.push(Bad::job("no type", "{\"args\": []}", 400, "invalid_request"));
    all.push(Bad::job("no args", "{\"type\": \"agent.x\"}", 400, "invalid_request"));
    refuse(all).await;
}

/// AIX-04, AIX-05, AIX-08, AIX-09: values out of range, of the wrong type or the wrong form are refused by name.
#[tokio::test]
async fn wrong_agent_fields_are_refused() {
    const CODE: &str = "AGENT_INVALID_PARAMETER";
    let tool = |name: Value| json!({"name": name});
    let mut all = Vec::new();
    for (field, values) in [
        ("ext_agent_temperature", vec![json!(3), json!(-0.1), json!("warm")]),
        ("ext_agent_token_budget", vec![json!(-1), json!(1.5), json!("many"), json!(u64::MAX)]),
        ("ext_agent_max_tokens", vec![json!(0), json!(-5), json!("x")]),
        ("ext_agent_model", vec![json!(5), json!({})]),
        ("ext_agent_fallback_models", vec![json!("m"), json!([5])]),
        (
            "ext_agent_tools",
            vec![
                json!("web_search"),
                json!([{}]),
                json!([tool(json!(5))]),
                json!([tool(json!(""))]),
                json!([tool(json!("not a name"))]),
                json!([tool(json!("../etc"))]),
                json!([tool(json!("n".repeat(300)))]),
                json!([tool(json!("search")), tool(json!("search"))]),
                json!([{"name": "search", "parameters": {"type": "strin"}}]),
                json!([{"name": "search", "parameters": 7}]),
            ],
        ),
        (
            "ext_agent_output_schema",
            vec![
                json!({"type": "strin"}),
                json!({"properties": 7}),
                json!("object"),
                json!(5),
                json!({"$ref": "https://example.org/schema.json"}),
            ],
        ),
        ("meta", vec![json!({"agent": 7}), json!({"agent": "nobody"})]),
    ] {
        for value in values {
            let what = format!("{field} = {}", value.to_string().chars().take(80).collect::<String>());
            all.push(Bad::job(what, job_with(field, value), 400, CODE));
        }
    }
    refuse(all).await;
}

#[tokio::test]
async fn bodies_that_are_too_large_are_refused() {
    let large = "x".repeat(2 * 1024 * 1024);
    let mut all = vec![
        Bad::job("2 MB of args", job_with("args", json!([large])), 413, "payload_too_large"),
        Bad::job("2 MB of nothing", vec![b' '; 2 * 1024 * 1024], 413, "payload_too_large"),
    ];
    let comment = agent_with(&format!("# {large}\n"));
    all.push(Bad { status: 413, code: "payload_too_large", ..Bad::agent("2 MB of YAML", comment) });
    refuse(all).await;
}

#[tokio::test]
async fn documents_that_are_no_agents_are_refused() {
    let bomb: String = (1..30).fold("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned(), |text, n| {
        let before = n - 1;
        text + &format!("a{n}: &a{n} [{}]\n", vec![format!("*a{before}"); 10].join(", "))
    });
    let bomb_inside = agent_with(&bomb);
    let sum = |terms: usize| vec!["1"; terms].join("+");
    let mut all = vec![
        Bad::agent("nothing", ""),
        Bad::agent("words", "please be an agent"),
        Bad::agent("a list", "[]"),
        Bad::agent("broken YAML", "kind: [\n"),
        Bad::agent("10,000 lists", format!("{}{}", "[".repeat(10_000), "]".repeat(10_000))),
        Bad::agent(
            "10,000 maps",
            agent_with(&format!("capabilities: {}1{}\n", "{a: ".repeat(10_000), "}".repeat(10_000))),
        ),
        Bad::agent("10,000 levels of indented lists", format!("kind: {}x", "- ".repeat(10_000))),
        Bad::agent("an alias bomb", bomb.clone()),
        Bad::agent("an alias bomb in an agent", bomb_inside),
        Bad::agent("a merge of itself", agent_with("capabilities: &c\n  <<: *c\n")),
        Bad::agent("an unknown key", agent_with("capabilties: {}\n")),
        Bad::agent("a key given twice", agent_with("owner: somebody\n")),
        Bad::agent("a bad name", AGENT.replace("desk", "no name")),
        Bad::agent("an unknown tool", agent_with("capabilities:\n  no-such-tool: {}\n")),
        Bad::agent(
            "an unknown tool in a manifest",
            manifest("  tools: [{type: http, name: no-such-tool}]\n"),
        ),
        Bad::agent("another version", AGENT.replace("v1/agent", "v9/agent")),
        Bad::agent("two documents", format!("{AGENT}---\n{AGENT}")),
    ];
    let nested =
        |open: &str, close: &str, times: usize| format!("{}true{}", open.repeat(times), close.repeat(times));
    for (what, expression) in [
        ("4 KB of 1+1+…", format!("{} > 0", sum(2_048))),
        ("64 KB of 1+1+…", format!("{} > 0", sum(32_768))),
        ("1 MB of 1+1+…", format!("{} > 0", sum(499_000))),
        ("2,000 parentheses", nested("(", ")", 2_000)),
        ("10,000 negations", nested("!", "", 10_000)),
        ("2,000 lists", nested("[", "]", 2_000)),
        ("2,000 conditions", format!("{}true", "true ? true : ".repeat(2_000))),
        ("no expression", "price <=".to_owned()),
        ("an unknown name", "nobody.knows == 1".to_owned()),
    ] {
        all.push(Bad::agent(what, restricted(&expression)));
    }
    refuse(all).await;
}

#[tokio::test]
async fn bytes_that_are_no_text_are_refused_as_an_agent() {
    let bytes = [AGENT.as_bytes(), b"# \xff\xfe\n"].concat();
    refuse(vec![Bad { status: 400, code: "invalid_payload", ..Bad::agent("not UTF-8", bytes) }]).await;
}

#[tokio::test]
async fn bad_ids_and_queries_are_refused() {
    let fleet = Fleet::builder().start().await;
    let unknown = "0190a7b2-0000-7000-8000-000000000001";
    let long = "x".repeat(4_000);
    for id in [unknown, "7", "..%2F..%2Fetc", "%00", "%27%20OR%201=1", &long] {
        for (method, path) in [
            (Method::GET, format!("/ojs/v1/jobs/{id}")),
            (Method::DELETE, format!("/ojs/v1/jobs/{id}")),
            (Method::GET, format!("/ojs/v1/jobs/{id}/events")),
            (Method::GET, format!("/engagements/{id}")),
            (Method::GET, format!("/engagements/{id}/messages")),
            (Method::GET, format!("/engagements/{id}/checkpoints")),
            (Method::GET, format!("/engagements/{id}/events")),
            (Method::GET, format!("/agents/{id}")),
            (Method::POST, format!("/reviews/{id}/approve")),
        ] {
            let shown = format!("{method} {}", path.chars().take(80).collect::<String>());
            let (status, answer) = fleet.send(method, &path, "").await;
            assert!(
                status == StatusCode::NOT_FOUND || status == StatusCode::BAD_REQUEST,
                "{shown}: {status}"
            );
            let error = &answer["error"];
            assert!(error["code"] == "not_found" || error["code"] == "invalid_request", "{shown}: {answer}");
            assert!(!error["hint"].as_str().unwrap_or_default().is_empty(), "{shown}: {answer}");
        }
    }
    for query in ["state=asleep", "page=0", "page=x", "per_page=101", "per_page=-1"] {
        let (status, answer) = fleet.send(Method::GET, &format!("/ojs/v1/admin/jobs?{query}"), "").await;
        assert_eq!(
            (status, &answer["error"]["code"]),
            (StatusCode::BAD_REQUEST, &json!("invalid_request")),
            "{query}"
        );
    }
    let (status, answer) = fleet.send(Method::GET, "/reviews?state=asleep", "").await;
    assert_eq!((status, &answer["error"]["code"]), (StatusCode::BAD_REQUEST, &json!("invalid_request")));
    assert_nothing_stored(&fleet).await;
    fleet.end().await;
}

#[tokio::test]
async fn a_bad_answer_leaves_the_review_open() {
    let fleet =
        Fleet::builder().model(|_| turnstone_tests::Reply::call("book", json!({"price": 640}))).start().await;
    let booker = agent_with(
        "capabilities:\n  book:\n    user_identity: false\n    input_restriction:\n      assertion: \"true\"\n      require_review: manager\n",
    );
    fleet.register(booker).await;
    let id = fleet.push(&json!({"type": "agent.book", "args": ["book"], "meta": {"agent": "desk"}})).await;
    assert_eq!(fleet.settled(&id).await["state"], "pending");
    let review = fleet.get("/reviews").await["items"][0]["id"].as_str().unwrap().to_owned();
    let deep = format!("{{\"by\": {}{}}}", "[".repeat(10_000), "]".repeat(10_000));
    for body in
        ["{", "[]", "{\"by\": 7}", "{\"who\": \"me\"}", "{\"by\": \"me\", \"reason\": []}", deep.as_str()]
    {
        let (status, answer) =
            fleet.send(Method::POST, &format!("/reviews/{review}/approve"), body.to_owned()).await;
        let shown = body.chars().take(40).collect::<String>();
        assert!(status.is_client_error(), "{shown}: {status} {answer}");
        assert!(
            answer["error"]["code"].is_string() && answer["error"]["hint"].is_string(),
            "{shown}: {answer}"
        );
    }
    assert_eq!(fleet.get("/reviews?state=open").await["items"].as_array().unwrap().len(), 1);
    assert_eq!(fleet.job(&id).await["state"], "pending");
    let (status, _) = fleet.send(Method::DELETE, &format!("/ojs/v1/jobs/{id}"), "").await;
    assert!(status.is_success());
    fleet.end().await;
}
