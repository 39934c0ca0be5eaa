//! The process that accepts a request with an `Idempotency-Key` is killed before the client reads the answer. The
//! repeated request is answered, and was applied once.

use super::load::client;
use super::site::Site;
use crate::program::Program;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use turnstone_tests::Place;
use turnstone_tests::wait::until;

/// The number of jobs of each request.
const SIZES: [i64; 4] = [1, 8, 1, 8];

/// Sends a request and reads no answer.
async fn send(bind: &str, path: &str, key: &str, body: &Value) -> TcpStream {
    let mut connection = TcpStream::connect(bind).await.expect("a connection");
    let body = body.to_string();
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: {bind}\r\nIdempotency-Key: {key}\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    connection.write_all(format!("{head}{body}").as_bytes()).await.expect("a request");
    connection
}

async fn killed(start: impl Fn(&str) -> Program, place: &Place) {
    let mut server = start("127.0.0.1:0");
    let url = server.first_line("turnstone listens on ").await;
    let bind = url.trim_start_matches("http://").to_owned();
    let (http, mut stored) = (client(), 0);
    let count = async || place.number("SELECT count(*) FROM jobs").await;
    for (round, size) in SIZES.into_iter().enumerate() {
        let (key, job) = (format!("k-{round}"), json!({"type": "echo", "args": [round]}));
        let (path, body) = match size {
            1 => ("/ojs/v1/jobs", job),
            _ => ("/ojs/v1/jobs/batch", json!({"jobs": (0..size).map(|_| &job).collect::<Vec<_>>()})),
        };
        let unread = send(&bind, path, &key, &body).await;
        stored += size;
        until("the jobs are stored", async || count().await == stored).await;
        server.signal("KILL");
        assert_eq!(server.ended().await, None, "{}", server.warned());
        drop(unread);
        server = start(&bind);
        server.says("turnstone listens on ").await;
        let request = http.post(format!("{url}{path}")).header("Idempotency-Key", &key).json(&body);
        let answer = request.send().await.expect("an answer");
        assert_eq!(answer.status(), 201);
        let answer: Value = answer.json().await.expect("JSON");
        assert_eq!(count().await, stored, "the repeated request stored jobs: {answer}");
        let jobs = answer["jobs"].as_array().cloned().unwrap_or_else(|| vec![answer["job"].clone()]);
        for job in &jobs {
            let id = job["id"].as_str().unwrap();
            assert_eq!(place.number(&format!("SELECT count(*) FROM jobs WHERE id = '{id}'")).await, 1);
        }
        assert_eq!(i64::try_from(jobs.len()).unwrap(), size);
    }
    server.stop().await;
}

#[tokio::test]
async fn a_request_that_is_repeated_after_a_kill_is_applied_once_on_sqlite() {
    let folder = turnstone_tests::scratch::folder();
    let start = |bind: &str| Program::start(folder.path(), &["dev", "--data", "data", "--bind", bind], &[]);
    killed(start, &folder.path().join("data/turnstone.db").into()).await;
}

#[tokio::test]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
async fn a_request_that_is_repeated_after_a_kill_is_applied_once_on_postgres() {
    let site = Site::start(&[]).await;
    let start = |bind: &str| {
        let database = [("DATABASE_URL", site.database.url.as_str())];
        Program::start(site.path(), &["api", "--bind", bind], &database)
    };
    killed(start, &Place::from(&site.database)).await;
}
