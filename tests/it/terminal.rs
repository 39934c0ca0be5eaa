//! The output of every command on a real terminal: nothing that an agent, a tool or another client wrote controls it, and JSON
//! in a pipe is exact.

use crate::program::{Ran, in_terminal, run};
use futures::StreamExt as _;
use reqwest::Method;
use serde_json::{Value, json};
use turnstone_tests::documents::oas;
use turnstone_tests::servers::need_python;
use turnstone_tests::{Backend, Fleet, Reply, model_server};

/// Clears the screen, sets a title, hides text, moves back, deletes, breaks the line, reorders, and tags.
const HOSTILE: &str = "fine\u{1b}[2J\u{1b}]0;owned\u{7}\u{9b}8m\u{8}\u{7f}\u{85}\u{2028}\u{202e}\u{2066}\u{200f}\u{200b}\u{e0041}end";
/// The characters of it that no terminal may receive.
const CONTROLS: [char; 13] = [
    '\u{1b}',
    '\u{7}',
    '\u{8}',
    '\u{7f}',
    '\u{85}',
    '\u{9b}',
    '\u{2028}',
    '\u{202e}',
    '\u{2066}',
    '\u{200f}',
    '\u{200b}',
    '\u{e0041}',
    '\u{9d}',
];
/// How many commands run at once.
const AT_ONCE: usize = 4;

/// The input decides: a call of a tool with a hostile name, a call that a reviewer has to answer, or a text.
fn script(request: &Value) -> Reply {
    let call = model_server::ModelCall { request: request.clone(), reported: 0 };
    match (call.input(), model_server::outcomes(request)) {
        ("call", 0) => Reply::call(HOSTILE, json!({"text": HOSTILE})),
        ("save", 0) => Reply::call(
            "save-artifact",
            json!({"name": ".\u{202e}fdp.bashrc", "media_type": "text/plain", "content": "x"}),
        ),
        ("book", 0) => Reply::call("book", json!({"price": 900, "note": HOSTILE})),
        _ => Reply::text(HOSTILE),
    }
}

/// A fleet whose data is hostile.
struct Site {
    fleet: Fleet,
    folder: tempfile::TempDir,
    /// A job, and its engagement, with hostile inputs, outcomes and results.
    job: String,
    engagement: String,
    /// An engagement without calls.
    other: String,
    /// An engagement with a file, and the file.
    maker: String,
    artifact: String,
    review: String,
    workflow: String,
}

impl Site {
    async fn start(backend: Backend) -> Self {
        let fleet = Fleet::builder().on(backend).model(script).start().await;
        let folder = turnstone_tests::scratch::folder();
        let asks = |input: &str, more: Value| {
            let mut job = json!({"type": "agent.ask", "args": [input], "ext_agent_model": "m", "meta": {"note": HOSTILE}});
            job.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            job
        };
        let ended = async |job: Value| {
            let id = fleet.push(&job).await;
            fleet.settled(&id).await;
            (fleet.engagement_of(&id).await, id)
        };
        let tools = json!({"ext_agent_tools": [{"name": "book"}]});
        let (engagement, job) = ended(asks("call", tools.clone())).await;
        let (other, _) = ended(asks(HOSTILE, json!({}))).await;
        let restricted = "capabilities:\n  book:\n    user_identity: false\n    input_restriction:\n      \
                          assertion: recent[\"book\"].inputs.price <= 1000\n      require_review: manager\n";
        fleet.register(oas("booker", restricted)).await;
        fleet
            .register(oas("maker", "capabilities: {save-artifact: {user_identity: false}}\n# \u{202e}8m\n"))
            .await;
        ended(json!({"type": "agent.book", "args": ["book"], "meta": {"agent": "booker"}})).await;
        let (maker, _) =
            ended(json!({"type": "agent.save", "args": ["save"], "meta": {"agent": "maker"}})).await;
        let review = fleet.get("/reviews?state=open").await["items"][0]["id"].as_str().unwrap().to_owned();
        let files = fleet.get(&format!("/engagements/{maker}/artifacts")).await;
        let artifact = files["artifacts"][0]["artifact_id"].as_str().unwrap().to_owned();
        let workflow = others(&fleet).await;
        Self { fleet, folder, job, engagement, other, maker, artifact, review, workflow }
    }

    /// Returns commands that print texts of others.
    fn commands(&self) -> Vec<Vec<&str>> {
        let (job, engagement) = (self.job.as_str(), self.engagement.as_str());
        vec![
            vec!["job", "list"],
            vec!["job", "get", job],
            vec!["job", "get", job, "--raw"],
            vec!["job", "watch", job],
            vec!["engagement", "list"],
            vec!["engagement", "show", engagement],
            vec!["engagement", "messages", engagement],
            vec!["engagement", "follow", engagement],
            vec!["engagement", "diff", engagement, &self.other],
            vec!["engagement", "artifacts", &self.maker],
            vec!["engagement", "export", engagement],
            vec!["engagement", "replay", engagement],
            vec!["review", "list"],
            vec!["review", "show", &self.review],
            vec!["dead-letter", "list"],
            vec!["queue", "list"],
            vec!["queue", "show", "mail"],
            vec!["cron", "list"],
            vec!["cron", "history", "nightly"],
            vec!["webhook", "list"],
            vec!["workflow", "list"],
            vec!["workflow", "get", &self.workflow],
            vec!["worker", "list"],
            vec!["key", "list"],
            vec!["audit", "list"],
            vec!["audit", "export"],
            vec!["freeze", "list"],
            vec!["budget", "list"],
            vec!["budget", "cost", engagement],
            vec!["agent", "list"],
            vec!["agent", "show", "maker"],
            vec!["breaker", "list"],
            vec!["credential", "list"],
        ]
    }

    async fn run(&self, arguments: &[&str]) -> Ran {
        run(self.folder.path(), &[arguments, &["--url", &self.fleet.url]].concat(), &[]).await
    }

    /// Runs a command on a terminal of this kind; standard error is on it as well.
    async fn shown(&self, term: &str, arguments: &[&str]) -> String {
        let all = [arguments, &["--url", &self.fleet.url]].concat();
        in_terminal(self.folder.path(), &all, &[("TERM", term)]).await.stdout
    }
}

/// Stores texts in whatever other clients may write; returns the id of a workflow.
async fn others(fleet: &Fleet) -> String {
    let dead = json!({"type": "mail.send", "args": [HOSTILE], "meta": {"note": HOSTILE}, "options": {"queue": "mail",
                      "retry": {"max_attempts": 1, "on_exhaustion": "dead_letter"}}});
    fleet.push(&dead).await;
    let fetch = json!({"queues": ["mail"], "count": 1, "worker_id": "w"});
    let (_, fetched) = fleet.post("/ojs/v1/workers/fetch", &fetch).await;
    let error = json!({"code": "smtp_down", "message": HOSTILE});
    let nack = json!({"job_id": fetched["jobs"][0]["id"], "error": error});
    let step = json!({"type": "mail.send", "args": [HOSTILE], "options": {"queue": "flow"}});
    let cron = json!({"name": "nightly", "expression": "0 0 * * *", "description": HOSTILE,
                      "job_template": {"type": "mail.send", "args": [HOSTILE]}});
    let mut id = String::new();
    for (method, path, body) in [
        (Method::POST, "/ojs/v1/workers/nack", nack),
        (Method::POST, "/ojs/v1/cron", cron),
        (Method::PUT, "/freeze", json!({"tenant": "acme", "reason": HOSTILE})),
        (
            Method::POST,
            "/ojs/v1/webhooks/subscriptions",
            json!({"url": "https://example.com/", "events": ["*"]}),
        ),
        (Method::POST, "/keys", json!({"name": "ann", "roles": ["viewer"]})),
        (Method::POST, "/ojs/v1/workflows", json!({"type": "chain", "name": HOSTILE, "steps": [step]})),
    ] {
        let (status, answer) = fleet.send(method, path, body.to_string()).await;
        assert!(status.is_success(), "{path}: {status} {answer:#}");
        id = answer["workflow"]["id"].as_str().unwrap_or_default().to_owned();
    }
    id
}

/// Returns an output without the colours and the line of progress of the program itself.
fn without_own(shown: &str) -> String {
    let colors = ["0", "1", "2", "4", "31", "32", "33", "36"].map(|code| format!("\u{1b}[{code}m"));
    let moves = ["\u{1b}[2K", "\u{1b}[1A", "\u{1b}[?25l", "\u{1b}[?25h"].map(str::to_owned);
    colors.iter().chain(&moves).fold(shown.to_owned(), |shown, own| shown.replace(own.as_str(), ""))
}

fn assert_tame(what: &[&str], shown: &str) {
    let found: Vec<char> = CONTROLS.into_iter().filter(|control| shown.contains(*control)).collect();
    assert!(found.is_empty(), "{what:?} prints {found:?}: {shown:?}");
}

/// Reads one JSON value, or one on each line.
fn values(what: &[&str], text: &str) -> Vec<Value> {
    let read = serde_json::Deserializer::from_str(text).into_iter().collect::<Result<Vec<Value>, _>>();
    read.unwrap_or_else(|error| panic!("{what:?}: {error}: {text}"))
}

async fn no_command_lets_others_control_a_terminal(backend: Backend) {
    let site = Site::start(backend).await;
    let commands = site.commands();
    let checks = commands.iter().map(|command| check(&site, command));
    let mut running = futures::stream::iter(checks).buffer_unordered(AT_ONCE);
    while running.next().await.is_some() {}
    drop(running);
    // A terminal with cursor movements, on which the program itself uses colours and a line of progress.
    for command in [
        vec!["job", "watch", &site.job],
        vec!["job", "watch", &site.job, "--verbose"],
        vec!["job", "list"],
        vec!["engagement", "diff", &site.engagement, &site.other],
        vec!["engagement", "messages", &site.engagement],
        vec!["agent", "run", "maker", HOSTILE],
        vec!["job", "get", HOSTILE],
        vec!["job", HOSTILE],
        vec!["job", "list", "-o", HOSTILE],
    ] {
        let shown = site.shown("xterm", &command).await;
        assert!(shown.contains("end") || shown.contains("fine"), "{command:?}: {shown:?}");
        assert_tame(&command, &without_own(&shown));
    }
    let saved = site.shown("dumb", &["engagement", "artifacts", &site.maker, "--save", &site.artifact]).await;
    assert!(saved.contains("is in fdp.bashrc"), "{saved}");
    assert!(site.folder.path().join("fdp.bashrc").exists());
    site.fleet.end_unchecked().await;
}

/// Compares a command on a terminal with the same in a pipe.
async fn check(site: &Site, command: &[&str]) {
    assert_tame(command, &site.shown("dumb", command).await);
    let json = [command, &["-o", "json", "--quiet"]].concat();
    let (shown, piped) = (site.shown("dumb", &json).await, site.run(&json).await);
    assert_tame(&json, &shown);
    assert_eq!(values(&json, &shown), values(&json, &piped.stdout), "{json:?}");
    let is_kept = |part: char| piped.stdout.contains(part);
    if matches!(
        command,
        ["job", "get", _] | ["engagement", "export" | "messages", _] | ["dead-letter", "list"]
    ) {
        assert!(['\u{9b}', '\u{202e}', '\u{e0041}'].into_iter().all(is_kept), "{json:?}: {}", piped.stdout);
    }
    if let ["engagement", "export", id] = command {
        let path = format!("{}/engagements/{id}/export", site.fleet.url);
        let sent = turnstone_tests::http::client().get(path).send().await.unwrap().text().await.unwrap();
        assert_eq!(piped.stdout.trim_end(), sent.trim_end());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[cfg_attr(no_python, ignore = "needs Python 3")]
async fn no_command_lets_the_texts_of_others_control_a_terminal() {
    need_python();
    no_command_lets_others_control_a_terminal(Backend::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: the same commands on PostgreSQL"]
async fn no_command_lets_the_texts_of_others_control_a_terminal_on_postgres() {
    need_python();
    no_command_lets_others_control_a_terminal(Backend::Postgres).await;
}
