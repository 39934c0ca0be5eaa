//! The gallery of `examples/`: the real program with its agents, its script and its tools, as in its README.

use crate::program::{Program, run};
use serde_json::{Value, json};
use turnstone_examples::{TOOL_SERVER_PORT, tool_server};
use turnstone_tests::wait;

const AGENTS: [&str; 7] = [
    "people-desk",
    "meeting-scheduler",
    "executive-assistant",
    "tech-support",
    "web-browser",
    "service-report",
    "notice-writer",
];
const SECRETS: [(&str, &str); 2] =
    [("DESK_KEY", "desk-key-of-the-gallery"), ("CALENDAR_OF_ADA", "calendar-of-ada")];

/// A running gallery, in a folder of its own.
struct Gallery {
    program: Program,
    url: String,
    tools: String,
    http: reqwest::Client,
    _folder: tempfile::TempDir,
}

impl Gallery {
    async fn open() -> Self {
        let folder = turnstone_tests::scratch::folder();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let tools = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, tool_server()).await });
        let from = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/gallery");
        let settings = std::fs::read_to_string(from.join("turnstone.toml")).unwrap();
        let settings = settings.replace(&format!("http://127.0.0.1:{TOOL_SERVER_PORT}"), &tools);
        std::fs::write(folder.path().join("turnstone.toml"), settings).unwrap();
        std::fs::copy(from.join("script.yaml"), folder.path().join("script.yaml")).unwrap();
        let arguments = ["dev", "--data", "data", "--bind", "127.0.0.1:0"];
        let mut program = Program::start(folder.path(), &arguments, &SECRETS);
        let url = program.first_line("turnstone listens on ").await;
        let http = turnstone_tests::http::client();
        let gallery = Self { program, url, tools, http, _folder: folder };
        let files = AGENTS.map(|agent| from.join(format!("agents/{agent}.yaml")).display().to_string());
        let files: Vec<&str> = files.iter().map(String::as_str).collect();
        gallery.command(&[&["agent", "apply"], files.as_slice()].concat()).await;
        gallery.command(&["agent", "lint", files[0]]).await;
        for (place, tool, header, prefix, secret) in [
            ("static:service-desk", "create-ticket", "X-Api-Key", "", "DESK_KEY"),
            ("user:ada", "create-meeting", "Authorization", "Bearer ", "CALENDAR_OF_ADA"),
        ] {
            let set = [
                "credential",
                "set",
                place,
                tool,
                "--header",
                header,
                "--prefix",
                prefix,
                "--secret",
                secret,
            ];
            gallery.command(&set).await;
        }
        gallery
    }

    async fn command(&self, arguments: &[&str]) {
        let ran = run(self.program.folder(), &[arguments, &["--url", &self.url]].concat(), &[]).await;
        assert_eq!(ran.code, Some(0), "{arguments:?}: {ran:?}");
    }

    /// Runs an engagement of an agent and returns its state.
    async fn ask(&self, agent: &str, input: &str) -> Value {
        let body = json!({"input": input, "metadata": {"user": {"id": "ada"}}});
        let began = self.http.post(format!("{}/agents/{agent}", self.url)).json(&body).send().await.unwrap();
        let state = began.url().clone();
        assert!(state.path().starts_with("/engagements/"), "the redirect leads to the state: {state}");
        let mut answer = Value::Null;
        wait::until("the engagement ends", async || {
            let now: Value = self.http.get(state.clone()).send().await.unwrap().json().await.unwrap();
            let status = now["status"].as_str().unwrap();
            assert!(!["failed", "cancelled"].contains(&status), "{agent}: {now:#}");
            answer = now["results"].clone();
            status == "completed"
        })
        .await;
        answer
    }

    /// Returns the bodies of the tool calls at this path.
    async fn calls(&self, path: &str) -> Vec<Value> {
        let log: Value =
            self.http.get(format!("{}/log", self.tools)).send().await.unwrap().json().await.unwrap();
        let calls = log["calls"].as_array().unwrap().iter();
        calls.filter(|call| call["path"] == path).map(|call| call["body"].clone()).collect()
    }
}

/// OAS-28, OAS-34: the desk reads its own shelf and no other one.
#[tokio::test]
async fn the_people_desk_reads_one_shelf() {
    let gallery = Gallery::open().await;
    let answer = gallery.ask("people-desk", "How many holidays may be carried over?").await;
    assert!(answer["text"].as_str().unwrap().contains("end of March"), "{answer}");
    assert_eq!(answer["pages"][0], "people/holidays");
    let refused = gallery.ask("people-desk", "What salary does a welder get?").await;
    assert_eq!(refused["text"], "The handbook has no answer to that for me.");
    assert!(gallery.calls("/handbook/search").await.iter().all(|call| call["shelf"] == "people/"));
    gallery.program.stop().await;
}

/// Issue 7, artifacts: an agent of the gallery makes a file, which is downloaded.
#[tokio::test]
async fn the_writer_makes_a_file() {
    let gallery = Gallery::open().await;
    let answer = gallery.ask("notice-writer", "How many holidays may be carried over?").await;
    let path = answer["notice"].as_str().unwrap_or_else(|| panic!("{answer:#}"));
    let file = gallery.http.get(format!("{}{path}", gallery.url)).send().await.unwrap();
    assert_eq!(file.headers()["content-type"], "text/markdown");
    let text = file.text().await.unwrap();
    assert!(text.starts_with("# Notice\n\n") && text.contains("end of March"), "{text}");
    gallery.program.stop().await;
}

/// OAS-25, OAS-26: a meeting is made with the identity of the user, and only with people whose calendars were read.
#[tokio::test]
async fn the_scheduler_makes_a_meeting_as_the_user() {
    let gallery = Gallery::open().await;
    let answer = gallery.ask("meeting-scheduler", "I want to meet Bo on 2 March.").await;
    assert!(answer["text"].as_str().unwrap().ends_with("ada@shoreline.example invites."), "{answer}");
    assert_eq!(answer["meeting"], "2026-03-02 11:00");
    let refused = gallery.ask("meeting-scheduler", "Make one with Bo at once.").await;
    assert!(refused["text"].as_str().unwrap().starts_with("No meeting was made"), "{refused}");
    assert_eq!(gallery.calls("/calendar/create").await.len(), 1);
    gallery.program.stop().await;
}

/// OAS-10, OAS-21, OAS-24: the assistant calls both desks and answers with their results.
#[tokio::test]
async fn the_assistant_calls_the_desks() {
    let gallery = Gallery::open().await;
    let answer = gallery.ask("executive-assistant", "Holidays, and a meeting with Bo, please.").await;
    let text = answer["text"].as_str().unwrap();
    assert!(text.contains("end of March") && text.contains("ada@shoreline.example invites."), "{answer}");
    assert_eq!(answer["asked"], json!(["people-desk", "meeting-scheduler"]));
    gallery.program.stop().await;
}

/// OAS-27, OAS-47: support answers from public pages, and opens a ticket with the key of its desk.
#[tokio::test]
async fn support_answers_or_opens_a_ticket() {
    let gallery = Gallery::open().await;
    let answer = gallery.ask("tech-support", "When do I get my refund?").await;
    assert_eq!((&answer["pages"][0], &answer["ticket_id"]), (&json!("public/refunds"), &Value::Null));
    let opened = gallery.ask("tech-support", "My barometer hums").await;
    assert_eq!(opened["ticket_id"], "SD-0001", "{opened}");
    gallery.program.stop().await;
}

/// OAS-35, OAS-47: the browser follows a link and reports the page.
#[tokio::test]
async fn the_browser_follows_a_link() {
    let gallery = Gallery::open().await;
    let answer = gallery.ask("web-browser", "When is the workshop open?").await;
    assert!(answer["text"].as_str().unwrap().contains("8 to 16"), "{answer}");
    assert_eq!(answer["read"], json!(["/", "/opening-hours"]));
    gallery.program.stop().await;
}

/// OAS-10, OAS-47: running services are reported; for others, support opens a ticket.
#[tokio::test]
async fn the_report_has_a_ticket_for_a_service_that_is_down() {
    let gallery = Gallery::open().await;
    let up = gallery.ask("service-report", "Does mail work?").await;
    assert_eq!((&up["text"], &up["ticket_id"]), (&json!("mail is UP."), &Value::Null));
    let down = gallery.ask("service-report", "Does printing work?").await;
    assert_eq!((&down["state"], &down["ticket_id"]), (&json!("DOWN"), &json!("SD-0001")), "{down}");
    gallery.program.stop().await;
}
