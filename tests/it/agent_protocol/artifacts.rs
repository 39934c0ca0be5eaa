//! Files that agents make: announced, listed, downloaded, limited in size, and held back.

use crate::crash::crash;
use crate::policy::{on_every_store, run};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use turnstone_domain::artifact::ArtifactLimits;
use turnstone_tests::documents::oas;
use turnstone_tests::{Backend, Fleet, Gate, Reply, model_server};

const PAGE: &str = "<script>alert(1)</script>";
const CAPABLE: &str = "capabilities: {save-artifact: {user_identity: false}}\n";

fn page() -> Value {
    json!({"name": "Übersicht.html", "media_type": "text/html", "content": PAGE})
}

/// Returns a script that calls the tool once with these arguments and then answers.
fn saves(arguments: Value) -> impl Fn(&Value) -> Reply + Send + Sync + 'static {
    move |request| match model_server::outcomes(request) {
        0 => Reply::call("save-artifact", arguments.clone()),
        _ => Reply::text("it is done"),
    }
}

/// The boss delegates a page to the maker. The system prompt identifies the agent.
fn boss(request: &Value) -> Reply {
    let is_maker = request["messages"][0]["content"].as_str().unwrap_or_default().contains("You are maker");
    match (is_maker, model_server::outcomes(request)) {
        (true, 0) => Reply::call("save-artifact", page()),
        (false, 0) => Reply::call("maker", json!({"input": "make it"})),
        _ => Reply::text("it is done"),
    }
}

async fn ask(fleet: &Fleet, agent: &str, tenant: Option<&str>) -> Value {
    let request = client().post(format!("{}/agents/{agent}/process?wait=true", fleet.url));
    let request = request.json(&json!({"input": "go"}));
    let request = tenant.into_iter().fold(request, |request, tenant| request.header("x-ojs-tenant", tenant));
    let answer = request.send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    answer.json().await.unwrap()
}

fn client() -> reqwest::Client {
    turnstone_tests::http::client()
}

async fn get(fleet: &Fleet, path: &str, headers: &[(&str, &str)]) -> reqwest::Response {
    let request = client().get(format!("{}{path}", fleet.url));
    headers.iter().fold(request, |request, (name, value)| request.header(*name, *value)).send().await.unwrap()
}

async fn listed(fleet: &Fleet, engagement: &str) -> Vec<Value> {
    fleet.get(&format!("/engagements/{engagement}/artifacts")).await["artifacts"].as_array().unwrap().clone()
}

/// Returns the events of a request once it has ended or waits, without the deltas of its models.
async fn file_events(fleet: &Fleet, agent: &str, request: &str) -> Vec<Value> {
    let url = format!("{}/agents/{agent}/getevents/{request}?stream=true", fleet.url);
    let frames = turnstone_tests::sse::read(&url, None, |_| false).await;
    let events = frames.iter().filter(|frame| frame.event != "delta");
    events.map(|frame| serde_json::from_str(&frame.data).unwrap()).collect()
}

fn of_files(events: &[Value]) -> Vec<&Value> {
    events.iter().filter(|event| event["type"] == "artifact_generated").collect()
}

/// AP-18: issue 7, artifacts; facts §3.2, §3.3: the event has name, `artifact_id`, url, media type and depth, and a
/// number within the run. The url returns the bytes with headers that keep browsers from rendering them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_is_announced_listed_and_downloaded() {
    on_every_store(async |backend| {
        let fleet = Fleet::builder().on(backend).workers(1).model(boss).start().await;
        fleet.register(oas("maker", CAPABLE)).await;
        fleet.register(oas("boss", "capabilities: {\"oagent://maker\": {}}\n")).await;
        let started = ask(&fleet, "boss", None).await;
        let events = file_events(&fleet, "boss", started["request_id"].as_str().unwrap()).await;
        let numbers: Vec<i64> = events.iter().map(|event| event["id"].as_i64().unwrap()).collect();
        assert_eq!(numbers, (1..=i64::try_from(events.len()).unwrap()).collect::<Vec<_>>());
        let files = of_files(&events);
        assert_eq!(files.len(), 1, "{events:#?}");
        let file = files[0];
        assert_eq!(
            (&file["agent"], &file["depth"], &file["role"]),
            (&json!("maker"), &json!(1), &json!("assistant"))
        );
        assert_eq!((&file["name"], &file["mime_type"]), (&json!("Übersicht.html"), &json!("text/html")));
        let url = file["url"].as_str().unwrap();
        assert_eq!(url, format!("/artifacts/{}", file["artifact_id"].as_str().unwrap()));
        let at = events.iter().position(|event| event["id"] == file["id"]).unwrap();
        assert_eq!((&events[at - 1]["type"], &events[at - 1]["depth"]), (&json!("tool_result"), &json!(1)));
        downloads(&fleet, url).await;

        let run = started["run_id"].as_str().unwrap();
        assert!(listed(&fleet, run).await.is_empty(), "it is the maker's");
        let child = fleet.get(&format!("/engagements/{run}")).await["children"][0]["engagement_id"].clone();
        let own = listed(&fleet, child.as_str().unwrap()).await;
        assert_eq!((own.len(), &own[0]["url"], &own[0]["bytes"]), (1, &json!(url), &json!(PAGE.len())));
        fleet.end().await;
    })
    .await;
}

/// The list has the name that the agent chose.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_is_offered_under_a_safe_name() {
    on_every_store(async |backend| {
        for (name, ascii, whole) in [
            (".bashrc", "bashrc", "bashrc"),
            ("a\u{202e}fdp.exe", "afdp.exe", "afdp.exe"),
            ("CON.txt", "_CON.txt", "_CON.txt"),
            ("-rf ü?", "rf __", "rf%20%C3%BC_"),
        ] {
            let file = json!({"name": name, "media_type": "text/plain", "content": "x"});
            let fleet = Fleet::builder().on(backend).workers(1).model(saves(file)).start().await;
            fleet.register(oas("maker", CAPABLE)).await;
            let started = ask(&fleet, "maker", None).await;
            // They end with the request.
            file_events(&fleet, "maker", started["request_id"].as_str().unwrap()).await;
            let files = listed(&fleet, started["run_id"].as_str().unwrap()).await;
            assert_eq!(files[0]["name"], name);
            let answer = get(&fleet, files[0]["url"].as_str().unwrap(), &[]).await;
            let offered = format!("attachment; filename=\"{ascii}\"; filename*=UTF-8''{whole}");
            assert_eq!(answer.headers()["content-disposition"].to_str().unwrap(), offered, "{name:?}");
            fleet.end().await;
        }
    })
    .await;
}

async fn downloads(fleet: &Fleet, url: &str) {
    let answer = get(fleet, url, &[]).await;
    let headers = answer.headers().clone();
    let header = |name: &str| headers[name].to_str().unwrap();
    assert_eq!((answer.status(), header("content-type")), (StatusCode::OK, "text/html"));
    assert!(
        header("content-disposition").starts_with("attachment; filename=\"_bersicht.html\";"),
        "{headers:?}"
    );
    assert!(header("content-disposition").ends_with("filename*=UTF-8''%C3%9Cbersicht.html"), "{headers:?}");
    assert_eq!(header("x-content-type-options"), "nosniff");
    assert!(header("content-security-policy").contains("sandbox"), "{headers:?}");
    let tag = header("etag").to_owned();
    assert_eq!(tag.trim_matches('"'), turnstone_domain::digest::of_text(PAGE));
    assert_eq!(answer.text().await.unwrap(), PAGE);
    let again = get(fleet, url, &[("if-none-match", &tag)]).await;
    assert_eq!(again.status(), StatusCode::NOT_MODIFIED);
    assert!(again.text().await.unwrap().is_empty());
    assert_eq!(get(fleet, "/artifacts/art_0", &[]).await.status(), StatusCode::NOT_FOUND);
}

/// Issue 7, bad input: a file of another tenant is not found.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_belongs_to_its_tenant() {
    on_every_store(async |backend| {
        let fleet = Fleet::builder().on(backend).workers(1).model(saves(page())).start().await;
        fleet.register(oas("maker", CAPABLE)).await;
        let started = ask(&fleet, "maker", Some("acme")).await;
        let run = started["run_id"].as_str().unwrap();
        fleet.until("the file is there", async || !listed(&fleet, run).await.is_empty()).await;
        let url = listed(&fleet, run).await[0]["url"].as_str().unwrap().to_owned();
        for (tenant, status) in [("acme", StatusCode::OK), ("other", StatusCode::NOT_FOUND)] {
            let headers = [("x-ojs-tenant", tenant)];
            assert_eq!(get(&fleet, &url, &headers).await.status(), status, "{tenant}");
            let list = get(&fleet, &format!("/engagements/{run}/artifacts"), &headers).await;
            assert_eq!(list.status(), status, "{tenant}");
        }
        fleet
            .until("it is over", async || {
                fleet.number("SELECT count(*) FROM jobs WHERE ended_at IS NULL").await == 0
            })
            .await;
        fleet.end().await;
    })
    .await;
}

/// Issue 7, "size-capped": a file that is too large is an error that the model reads. The call is not retried, and
/// nothing is stored.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_is_too_large_fails_its_call() {
    for (limits, kept, key) in [
        (ArtifactLimits { each: 4, engagement: 100 }, 0, "artifact_max_bytes"),
        (ArtifactLimits { each: 8, engagement: 12 }, 2, "artifacts_max_bytes"),
    ] {
        let script = |request: &Value| match model_server::outcomes(request) {
            n @ 0..3 => Reply::call("save-artifact", json!({"name": format!("{n}.txt"), "content": "12345"})),
            _ => Reply::text("it is done"),
        };
        let mut fleet = Fleet::builder().workers(0).model(script).start().await;
        fleet.add_worker_with(4, |mut deps| {
            deps.options.artifacts = limits;
            deps
        });
        fleet.register(oas("maker", CAPABLE)).await;
        let (job, engagement) = run(&fleet, "maker").await;
        assert_eq!(job["state"], "completed", "{job:#}");
        assert_eq!(listed(&fleet, &engagement).await.len(), kept);
        let last = fleet.models.calls().pop().unwrap().request["messages"].to_string();
        assert!(last.contains(key), "{last}");
        assert_eq!(fleet.number("SELECT count(*) FROM artifacts").await, i64::try_from(kept).unwrap());
        fleet.end().await;
    }
}

/// OAS-43, OAS-44: with an output guardrail, a file is hidden until the answer passes. It stays hidden when the
/// answer or the file does not pass.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_guarded_file_is_hidden_until_it_passes() {
    on_every_store(async |backend| {
        for (assertion, passes) in [
            ("echo.output.size() > 3", true),
            ("!(echo.output.contains('done'))", false),
            ("!(echo.output.contains('script'))", false),
        ] {
            let gate = Gate::default();
            let held = gate.clone();
            let script = move |request: &Value| match model_server::outcomes(request) {
                0 => Reply::call("save-artifact", page()),
                _ => Reply::text("it is done").behind(&held),
            };
            let fleet = Fleet::builder().on(backend).workers(1).model(script).start().await;
            let guard =
                format!("guardrails: {{output: {{tool_name: search, assertion: \"{assertion}\"}}}}\n");
            fleet.register(oas("quiet", &format!("{CAPABLE}{guard}"))).await;
            let started = ask(&fleet, "quiet", None).await;
            let run = started["run_id"].as_str().unwrap();
            let request = started["request_id"].as_str().unwrap();
            if !assertion.contains("script") {
                fleet.models.seen(2).await;
                let id = announced(&fleet, run).await;
                assert!(listed(&fleet, run).await.is_empty());
                assert_eq!(
                    get(&fleet, &format!("/artifacts/{id}"), &[]).await.status(),
                    StatusCode::NOT_FOUND
                );
                let events = fleet.get(&format!("/agents/quiet/getevents/{request}?since=0")).await;
                assert!(of_files(events.as_array().unwrap()).is_empty(), "{events:#}");
            }
            gate.open();
            let events = file_events(&fleet, "quiet", request).await;
            assert_eq!(of_files(&events).len(), usize::from(passes), "{assertion}: {events:#?}");
            assert_eq!(listed(&fleet, run).await.len(), usize::from(passes), "{assertion}");
            if passes {
                let url = of_files(&events)[0]["url"].as_str().unwrap().to_owned();
                assert_eq!(get(&fleet, &url, &[]).await.text().await.unwrap(), PAGE);
            }
            fleet.end().await;
        }
    })
    .await;
}

/// OAS-43: a file that outlives its deleted request stays held back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_guarded_file_stays_hidden_after_its_request_is_deleted() {
    on_every_store(async |backend| {
        let fleet = Fleet::builder().on(backend).workers(1).model(saves(page())).start().await;
        let guard =
            "guardrails: {output: {tool_name: search, assertion: \"!(echo.output.contains('done'))\"}}\n";
        fleet.register(oas("quiet", &format!("{CAPABLE}{guard}"))).await;
        let first = ask(&fleet, "quiet", None).await;
        let run = first["run_id"].as_str().unwrap();
        file_events(&fleet, "quiet", first["request_id"].as_str().unwrap()).await;
        let id = announced(&fleet, run).await;
        let before = fleet.now().plus_ms(500).to_rfc3339();
        fleet.clock.advance_ms(1_000);
        let request = client().post(format!("{}/agents/quiet/process?wait=true", fleet.url));
        let second: Value =
            request.json(&json!({"input": "go", "run_id": run})).send().await.unwrap().json().await.unwrap();
        file_events(&fleet, "quiet", second["request_id"].as_str().unwrap()).await;
        let body = json!({"filter": {"state": "discarded", "until": before}, "confirm": true});
        let (status, answer) = fleet.post("/ojs/v1/admin/jobs/bulk/delete", &body).await;
        assert_eq!((status, &answer["ids"][0]), (StatusCode::OK, &first["request_id"]), "{answer}");
        assert!(fleet.number("SELECT count(*) FROM artifacts").await > 0, "the files are the run's");
        assert!(listed(&fleet, run).await.is_empty());
        assert_eq!(get(&fleet, &format!("/artifacts/{id}"), &[]).await.status(), StatusCode::NOT_FOUND);
        // The usage of the deleted request stays with its engagement, so the ledger differs from the jobs.
        fleet.end_unchecked().await;
    })
    .await;
}

/// Returns the artifact id of the event, which contains nothing else of the file.
async fn announced(fleet: &Fleet, run: &str) -> String {
    let page = fleet.get(&format!("/engagements/{run}/events?limit=200")).await;
    let events = page["events"].as_array().unwrap();
    let event = events
        .iter()
        .find(|event| event["name"] == "artifact.generated")
        .unwrap_or_else(|| panic!("{page:#}"));
    assert!(!event["data"].to_string().contains("bersicht"), "{event:#}");
    event["data"]["artifact_id"].as_str().unwrap().to_owned()
}

/// OAS-29: a file whose call needs a review exists only after the approval.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reviewed_file_exists_after_its_approval() {
    on_every_store(async |backend| {
        let fleet = Fleet::builder().on(backend).workers(1).model(saves(page())).start().await;
        let body = "capabilities:\n  save-artifact: {user_identity: false, output_restriction: {require_review: ann}}\n";
        fleet.register(oas("maker", body)).await;
        let started = ask(&fleet, "maker", None).await;
        let (run, request) = (started["run_id"].as_str().unwrap(), started["request_id"].as_str().unwrap());
        fleet.until("the review is pending", async || {
            !fleet.get("/reviews?state=open").await["items"].as_array().unwrap().is_empty()
        })
        .await;
        assert!(listed(&fleet, run).await.is_empty());
        let review = fleet.get("/reviews?state=open").await["items"][0]["id"].as_str().unwrap().to_owned();
        let (status, body) = fleet.post(&format!("/reviews/{review}/approve"), &json!({"by": "ann"})).await;
        assert!(status.is_success(), "{body}");
        let events = file_events(&fleet, "maker", request).await;
        assert_eq!(of_files(&events).len(), 1, "{events:#?}");
        assert_eq!(listed(&fleet, run).await.len(), 1);
        fleet.end().await;
    })
    .await;
}

/// Issue 7, artifacts: bytes and event are stored together. A worker that is killed between the call and its outcome
/// leaves neither.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_worker_makes_a_file_once() {
    on_every_store(async |backend| {
        for point in ["1:outcome:before", "1:outcome:after"] {
            let script = |request: &Value| match model_server::outcomes(request) {
                0 => Reply::call("save_artifact", json!({"name": "a.txt", "content": "once"})),
                _ => Reply::text("it is done"),
            };
            let fleet = Fleet::builder().on(backend).workers(0).model(script).start().await;
            let job = json!({"type": "agent.files", "args": ["go"], "ext_agent_model": "m",
                             "ext_agent_tools": [{"name": "save_artifact"}]});
            let id = fleet.push(&job).await;
            crash(&fleet, &id, point).await;
            assert_eq!(fleet.job(&id).await["state"], "completed", "{point}");
            let engagement = fleet.engagement_of(&id).await;
            assert_eq!(listed(&fleet, &engagement).await.len(), 1, "{point}");
            let names = fleet.event_names(&id).await;
            assert_eq!(
                names.iter().filter(|name| *name == "artifact.generated").count(),
                1,
                "{point}: {names:?}"
            );
            assert_eq!(fleet.number("SELECT uses FROM artifact_contents").await, 1, "{point}");
            fleet.end().await;
        }
    })
    .await;
}

/// Issue 7, "A2A": a file is an artifact of its task with an absolute URL, and appears in the stream.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_is_an_artifact_of_its_task() {
    let fleet = Fleet::builder().on(Backend::Sqlite).workers(1).model(saves(page())).start().await;
    fleet.register(oas("maker", CAPABLE)).await;
    let call = |method: &str, params: Value| {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        client().post(format!("{}/a2a/maker", fleet.url)).header("a2a-version", "1.0").json(&body).send()
    };
    let message =
        |id: &str| json!({"message": {"messageId": id, "role": "ROLE_USER", "parts": [{"text": "go"}]}});
    let sent: Value = call("SendMessage", message("m-1")).await.unwrap().json().await.unwrap();
    let artifacts = sent["result"]["task"]["artifacts"].as_array().unwrap();
    assert_eq!((artifacts.len(), &artifacts[0]["artifactId"]), (2, &json!("answer")), "{sent:#}");
    let part = &artifacts[1]["parts"][0];
    assert_eq!((&part["filename"], &part["mediaType"]), (&json!("Übersicht.html"), &json!("text/html")));
    let url = part["url"].as_str().unwrap().strip_prefix(&fleet.url).expect("a whole address").to_owned();
    assert_eq!(get(&fleet, &url, &[]).await.text().await.unwrap(), PAGE);

    let stream = call("SendStreamingMessage", message("m-2")).await.unwrap().text().await.unwrap();
    let reported = stream.lines().filter_map(|line| line.strip_prefix("data:")).map(str::trim);
    let reported: Vec<Value> = reported.map(|line| serde_json::from_str(line).unwrap()).collect();
    let files: Vec<&Value> = reported
        .iter()
        .flat_map(|one| {
            let first = one["result"]["task"]["artifacts"].as_array().into_iter().flatten();
            first.chain(std::iter::once(&one["result"]["artifactUpdate"]["artifact"]))
        })
        .filter(|artifact| artifact["artifactId"].as_str().is_some_and(|id| id.starts_with("art_")))
        .collect();
    assert_eq!(files.len(), 1, "{reported:#?}");
    assert_eq!(files[0]["name"], "Übersicht.html");
    let (status, _) = fleet.send(Method::GET, "/artifacts/art_none", "").await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    fleet
        .until("it is over", async || {
            fleet.number("SELECT count(*) FROM jobs WHERE state = 'completed'").await == 2
        })
        .await;
    fleet.end().await;
}
