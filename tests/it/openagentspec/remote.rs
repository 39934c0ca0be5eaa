//! Two servers whose agents call one another over TLS.

use super::Authority;
use crate::program::{PATIENCE, Program, run};
use reqwest::{Client, Method};
use serde_json::{Value, json};
use tempfile::TempDir;
use turnstone_tests::documents::oas;
use turnstone_tests::model_server::Gate;
use turnstone_tests::model_server::{tool_outcome, who};
use turnstone_tests::servers::Port;
use turnstone_tests::wait::{until, until_within};
use turnstone_tests::{ModelServer, Reply, model_server};

const KEYS: [&str; 2] = ["key-that-server-a-gave-to-server-b", "key-that-server-b-gave-to-server-a"];
const OWN: &str = "key-of-the-operator-of-this-server";

/// One of the two servers.
struct Site {
    folder: TempDir,
    port: Port,
    program: Option<Program>,
    http: Client,
}

impl Site {
    /// Prepares a server with a single slot. It gave the other one the key `given` and received the key `taken`.
    fn new(
        authority: &Authority,
        port: Port,
        other: u16,
        (given, taken): (&str, &str),
        models: &str,
    ) -> Self {
        let folder = turnstone_tests::scratch::folder();
        authority.equip(folder.path());
        for (file, text) in [("own.key", OWN), ("given.key", given), ("taken.key", taken)] {
            std::fs::write(folder.path().join(file), text).unwrap();
        }
        let (place, bind) = (folder.path().display(), port.addr());
        let settings = format!(
            "[server]\nbind = '{bind}'\napi_keys = ['file:{place}/own.key']\n\
             [server.tls]\ncert = 'cert.pem'\nkey = 'key.pem'\n\
             [remote]\nallow_private = true\nca = 'ca.pem'\nmax_tokens = 5000\n\
             [remote.hosts.'127.0.0.1:{other}']\nkey = 'file:{place}/taken.key'\n\
             [remote.peers.other]\nkey = 'file:{place}/given.key'\nusers = ['*']\n\
             [providers.test]\nkind = 'openai'\nbase_url = '{models}'\n\
             [worker]\nslots = 1\n[models]\ndefault_provider = 'test'\ndefault_model = 'm'\nmax_tokens = 100\n[agents]\ndir = 'agents'\n"
        );
        std::fs::create_dir_all(folder.path().join("agents")).unwrap();
        std::fs::write(folder.path().join("turnstone.toml"), settings).unwrap();
        Self { folder, port, program: None, http: authority.client() }
    }

    fn agent(&self, name: &str, rest: &str) {
        std::fs::write(self.folder.path().join(format!("agents/{name}.yaml")), oas(name, rest)).unwrap();
    }

    async fn start(&mut self) {
        let mut program = Program::start(self.folder.path(), &["dev"], &[]);
        program.says(&format!("https://{}", self.port.addr())).await;
        self.program = Some(program);
    }

    /// Kills the program with SIGKILL; its port and its data are free afterwards.
    async fn kill(&mut self) {
        if let Some(mut program) = self.program.take() {
            program.signal("KILL");
            assert_eq!(program.ended().await, None);
        }
    }

    async fn send(&self, method: Method, path: &str, key: &str, body: &Value) -> (u16, Value) {
        let request = self.http.request(method, format!("https://{}{path}", self.port.addr()));
        let request = request.bearer_auth(key).header("content-type", "application/json");
        let answer = request.body(body.to_string()).send().await.unwrap();
        let status = answer.status().as_u16();
        let text = answer.text().await.unwrap();
        (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
    }

    async fn get(&self, path: &str) -> Value {
        let (status, body) = self.send(Method::GET, path, OWN, &Value::Null).await;
        assert_eq!(status, 200, "{path}: {body}");
        body
    }

    /// Returns the engagements of an agent.
    async fn engagements(&self, agent: &str) -> Vec<Value> {
        let jobs = self.get("/ojs/v1/admin/jobs?per_page=100").await;
        let mut found = Vec::new();
        for job in jobs["items"].as_array().unwrap() {
            let id = job["id"].as_str().unwrap();
            let job = self.get(&format!("/ojs/v1/jobs/{id}")).await;
            let job = if job["job"].is_object() { &job["job"] } else { &job };
            let id = job["ext_agent_engagement_id"].as_str().unwrap();
            let state = self.get(&format!("/engagements/{id}")).await;
            found.extend((state["agent"] == agent).then_some(state));
        }
        found
    }

    async fn stop(mut self) {
        if let Some(program) = self.program.take() {
            program.stop().await;
        }
    }
}

/// Front calls the clerk on the other server, which calls the archive on this one.
fn script(gate: Gate) -> impl Fn(&Value) -> Reply + Send + Sync {
    move |request| match (who(request), model_server::outcomes(request)) {
        ("front", 0) => Reply::call("clerk", json!({"input": "what do we know?"})),
        ("clerk", 0) => Reply::call("archive", json!({"input": "look it up"})),
        ("archive", _) => Reply::text("it is in the archive").behind(&gate),
        ("desk" | "deskless", 0) => Reply::call("guide", json!({"input": "plan a trip"})),
        ("desk" | "deskless", _) => Reply::text(format!("desk has heard {}", tool_outcome(request))),
        ("guide", 0) => Reply::call("ask-user", json!({"question": "Which city?"})),
        ("guide", 1) => Reply::call("ask-user", json!({"question": "And when?"})),
        ("guide", _) => Reply::text(format!("going on {}", tool_outcome(request))),
        ("ping", 0) => Reply::call("pong", json!({"input": "again"})),
        ("pong", 0) => Reply::call("ping", json!({"input": "again"})),
        (name, _) => Reply::text(format!("{name} received")),
    }
}

async fn pair(models: &ModelServer) -> (Site, Site) {
    let authority = Authority::new();
    let (port_a, port_b) = (Port::reserve(), Port::reserve());
    let (a, b) = (port_a.number(), port_b.number());
    let mut site_a = Site::new(&authority, port_a, b, (KEYS[0], KEYS[1]), &models.url);
    let mut site_b = Site::new(&authority, port_b, a, (KEYS[1], KEYS[0]), &models.url);
    let far = |port: u16, name: &str| {
        format!("capabilities: {{'oagent://127.0.0.1:{port}/agents/{name}': {{}}}}\n")
    };
    site_a.agent("front", &far(b, "clerk"));
    site_a.agent("archive", "");
    site_a.agent("ping", &far(b, "pong"));
    let guide = format!("'oagent://127.0.0.1:{b}/agents/guide': {{}}");
    site_a.agent("desk", &format!("capabilities: {{{guide}, ask-user: {{}}}}\n"));
    site_a.agent("deskless", &format!("capabilities: {{{guide}}}\n"));
    site_b.agent("guide", "capabilities: {ask-user: {}}\n");
    site_b.agent("clerk", &far(a, "archive"));
    site_b.agent("pong", &far(a, "ping"));
    site_b.start().await;
    site_a.start().await;
    (site_a, site_b)
}

async fn push(site: &Site, agent: &str) -> String {
    let job = json!({"type": "a.b", "args": ["go"], "ext_agent_token_budget": 4000,
                     "meta": {"agent": agent, "user": {"id": "u-7", "email": "ann@example.org"}}});
    let (status, body) = site.send(Method::POST, "/ojs/v1/jobs", OWN, &job).await;
    assert_eq!(status, 201, "{body}");
    let id = if body["job"].is_object() { &body["job"]["id"] } else { &body["id"] };
    id.as_str().unwrap().to_owned()
}

/// Returns the first engagement of an agent, once it has ended.
async fn ended(site: &Site, agent: &str) -> Value {
    let over = |state: &Value| ["completed", "failed"].iter().any(|word| state["status"] == *word);
    until("it has ended", async || site.engagements(agent).await.first().is_some_and(over)).await;
    site.engagements(agent).await.remove(0)
}

/// OAS-11, OAS-14, OAS-68, OAS-71: agents of two servers call one another over TLS with depth, budget and user
/// intact. A server that is killed meanwhile resumes the same engagements. Each has a single slot, which is free
/// during the remote call.
#[tokio::test]
async fn two_servers_call_one_another_and_survive_a_kill() {
    turnstone_tests::fleet::install_crypto();
    let gate = Gate::default();
    let models = ModelServer::start(script(gate.clone())).await;
    let (mut a, b) = pair(&models).await;
    push(&a, "front").await;
    // Front, clerk and archive have called their models; the archive's answer is held back.
    models.seen(3).await;
    a.kill().await;
    gate.open();
    a.start().await;
    let front = ended(&a, "front").await;
    assert_eq!(
        (&front["status"], &front["results"]["text"]),
        (&json!("completed"), &json!("front received"))
    );
    let (clerks, archives) = (b.engagements("clerk").await, a.engagements("archive").await);
    assert_eq!((clerks.len(), archives.len()), (1, 1), "each was engaged once");
    for (state, depth) in [(&front, 0), (&clerks[0], 1), (&archives[0], 2)] {
        assert_eq!(state["depth"], depth, "{state:#}");
        assert_eq!(state["user"], json!({"id": "u-7", "email": "ann@example.org"}), "{state:#}");
    }
    let used = |state: &Value| state["tokens"]["used"].as_i64().unwrap();
    assert!(used(&archives[0]) > 0 && used(&clerks[0]) > used(&archives[0]), "{clerks:#?}");
    assert!(used(&front) > used(&clerks[0]), "the remote usage is booked here");
    let limit = |state: &Value| state["tokens"]["limit"].as_i64().unwrap();
    assert!(limit(&front) == 4000 && limit(&clerks[0]) < 4000 && limit(&archives[0]) < limit(&clerks[0]));
    assert_eq!(front["tokens"]["reserved"], 0, "{front:#}");
    a.stop().await;
    b.stop().await;
}

/// OAS-11, OAS-A18: a circle over two servers ends at the maximum depth. A peer may engage agents and nothing else,
/// and delegation headers of other clients are refused.
#[tokio::test]
async fn a_circle_over_two_servers_ends_and_a_peer_is_no_operator() {
    turnstone_tests::fleet::install_crypto();
    let models = ModelServer::start(script(Gate::default())).await;
    let (a, b) = pair(&models).await;
    push(&a, "ping").await;
    // Eleven engagements wait for one another, and each polls up to every three seconds.
    until_within("the circle has ended", PATIENCE * 4, async || {
        a.engagements("ping").await.iter().any(|state| state["depth"] == 0 && state["status"] == "completed")
    })
    .await;
    let depths = |states: Vec<Value>| -> Vec<i64> {
        states.iter().map(|state| state["depth"].as_i64().unwrap()).collect()
    };
    let mut depths = [depths(a.engagements("ping").await), depths(b.engagements("pong").await)].concat();
    depths.sort_unstable();
    assert_eq!(depths, (0..=10).collect::<Vec<i64>>());

    let nothing = Value::Null;
    assert_eq!(a.send(Method::GET, "/agents", KEYS[0], &nothing).await.0, 200);
    for (method, path) in [
        (Method::GET, "/ojs/v1/admin/jobs"),
        (Method::POST, "/agents"),
        (Method::GET, "/reviews"),
        (Method::GET, "/credentials"),
    ] {
        assert_eq!(a.send(method, path, KEYS[0], &nothing).await.0, 403, "{path}");
    }
    assert_eq!(a.send(Method::GET, "/agents", KEYS[1], &nothing).await.0, 401, "the other's key");
    let deep = a.http.post(format!("https://{}/agents/archive", a.port.addr())).json(&json!({"input": "x"}));
    let sent = |key: &str, depth: &str| {
        deep.try_clone().unwrap().bearer_auth(key).header("turnstone-delegation-depth", depth).send()
    };
    assert_eq!(sent(KEYS[0], "11").await.unwrap().status(), 422);
    assert_eq!(sent(KEYS[0], "-1").await.unwrap().status(), 400);
    assert_eq!(sent(OWN, "1").await.unwrap().status(), 403, "only a peer may set the depth");
    a.stop().await;
    b.stop().await;
}

/// OAS-11: a remote agent's question reaches the local user, although its server is killed and restarted, and each
/// answer goes to its own question. A peer ends and answers only the requests that it began.
#[tokio::test]
async fn a_question_from_another_server_reaches_the_local_user() {
    turnstone_tests::fleet::install_crypto();
    let models = ModelServer::start(script(Gate::default())).await;
    let (mut a, b) = pair(&models).await;
    push(&a, "desk").await;
    let mut before = Value::Null;
    for (words, answer) in [("Which city?", "Oslo"), ("And when?", "Monday")] {
        let asks = |state: &Value| {
            let call = &state["awaiting"]["call_id"];
            call.is_string() && *call != before
        };
        until(words, async || a.engagements("desk").await.first().is_some_and(asks)).await;
        let state = a.engagements("desk").await.remove(0);
        assert!(state["awaiting"]["prompt"].as_str().unwrap().contains(words), "{state:#}");
        before = state["awaiting"]["call_id"].clone();
        a.kill().await;
        a.start().await;
        let place = format!("/engagements/{}/answer", state["engagement_id"].as_str().unwrap());
        let (status, body) = a.send(Method::POST, &place, OWN, &json!({"answers": {"answer": answer}})).await;
        assert_eq!(status, 200, "{body}");
    }
    let desk = ended(&a, "desk").await;
    let text = desk["results"]["text"].as_str().unwrap_or_default();
    assert!(text.contains("going on") && text.contains("Monday"), "{desk:#}");
    assert_eq!((b.engagements("guide").await.len(), models.count()), (1, 5), "no model was called twice");
    // The request belongs to the peer's key, and no other key may end it.
    let guide = b.engagements("guide").await.remove(0);
    let cancel = json!({"type": "CancelRequest", "request_id": guide["job_id"]});
    assert_eq!(b.send(Method::POST, "/agents/guide/process", KEYS[1], &cancel).await.0, 404);
    a.stop().await;
    b.stop().await;
}

/// OAS-11, issue 7, "Cancel": cancelling the job ends the remote engagement, and so does a question without a local
/// user.
#[tokio::test]
async fn a_remote_engagement_without_a_waiting_job_is_ended() {
    turnstone_tests::fleet::install_crypto();
    let models = ModelServer::start(script(Gate::default())).await;
    let (a, b) = pair(&models).await;
    let job = push(&a, "front").await;
    // Front, clerk and archive have called their models; the archive's answer is held back.
    models.seen(3).await;
    let (status, body) = a.send(Method::POST, &format!("/ojs/v1/jobs/{job}/cancel"), OWN, &json!({})).await;
    assert!(status < 300, "{body}");
    let all =
        |states: Vec<Value>, word: &str| !states.is_empty() && states.iter().all(|s| s["status"] == word);
    until("the clerk is cancelled", async || all(b.engagements("clerk").await, "cancelled")).await;
    until("and so is the archive", async || all(a.engagements("archive").await, "cancelled")).await;
    push(&a, "deskless").await;
    let desk = ended(&a, "deskless").await;
    assert!(desk["results"]["text"].as_str().unwrap_or_default().contains("Which city?"), "{desk:#}");
    until("the guide is cancelled", async || all(b.engagements("guide").await, "cancelled")).await;
    a.stop().await;
    b.stop().await;
}

/// OAS-11: without `[remote]` a remote agent is refused by name, and so is a host that is not configured.
#[tokio::test]
async fn remote_agents_are_refused_unless_their_host_is_configured() {
    let folder = turnstone_tests::scratch::folder();
    std::fs::create_dir(folder.path().join("agents")).unwrap();
    let text = oas("desk", "capabilities: {'oagent://agents.example.com/agents/clerk': {}}\n");
    std::fs::write(folder.path().join("agents/desk.yaml"), text).unwrap();
    let start = async |more: &str, words: &str| {
        let settings = format!("[server]\nbind = '127.0.0.1:0'\n[agents]\ndir = 'agents'\n{more}");
        std::fs::write(folder.path().join("turnstone.toml"), settings).unwrap();
        let mut program = Program::start(folder.path(), &["dev"], &[("THE_KEY", "k-1")]);
        program.warns(words).await;
        program.says("turnstone listens on ").await;
        program.stop().await;
    };
    start("", "desk.yaml:6:16: error[OAS-11]").await;
    start(
        "[remote.hosts.'other.example.com']\nkey = 'env:THE_KEY'\n",
        "agents.example.com, which is not among",
    )
    .await;
    let lint = run(folder.path(), &["agent", "lint", "agents/desk.yaml"], &[]).await;
    assert_eq!(lint.code, Some(0), "its form is right: {lint:?}");
    let odd = oas("odd", "capabilities: {'oagent://u@h/../clerk': {}}\n");
    std::fs::write(folder.path().join("agents/desk.yaml"), odd).unwrap();
    let lint = run(folder.path(), &["agent", "lint", "agents/desk.yaml"], &[]).await;
    assert!(lint.code == Some(1) && format!("{lint:?}").contains("OAS-11"), "{lint:?}");
}
