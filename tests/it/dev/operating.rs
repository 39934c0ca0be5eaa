//! The operator's commands against a `turnstone dev`: queues, dead letters, cron, workflows, webhooks, workers.

use super::Dev;
use serde_json::{Value, json};

async fn dev() -> (Dev, tempfile::TempDir) {
    let folder = turnstone_tests::scratch::folder();
    (Dev::start(folder.path(), &[]).await, folder)
}

impl Dev {
    pub(super) async fn post(&self, path: &str, body: &Value) -> Value {
        let answer =
            self.http.post(format!("{}{path}", self.url)).json(body).send().await.expect("an answer");
        let status = answer.status();
        let answer: Value = answer.json().await.expect("JSON");
        assert!(status.is_success(), "POST {path}: {status} {answer}");
        answer
    }

    async fn pushed(&self, queue: &str, count: usize) -> Vec<String> {
        let jobs: Vec<Value> = (0..count)
            .map(|n| json!({"type": "mail.send", "args": [n], "options": {"queue": queue, "retry": {"max_attempts": 1, "on_exhaustion": "dead_letter"}}}))
            .collect();
        let answer = self.post("/ojs/v1/jobs/batch", &json!({ "jobs": jobs })).await;
        answer["jobs"].as_array().unwrap().iter().map(|job| job["id"].as_str().unwrap().to_owned()).collect()
    }

    async fn fails_all(&self, queue: &str, count: usize) {
        let fetched = self.post("/ojs/v1/workers/fetch", &json!({ "queues": [queue], "count": count })).await;
        for job in fetched["jobs"].as_array().unwrap() {
            let error = json!({"code": "smtp_down", "message": "the mail server is away"});
            self.post("/ojs/v1/workers/nack", &json!({ "job_id": job["id"], "error": error })).await;
        }
    }

    pub(super) async fn says_ok(&self, arguments: &[&str]) -> String {
        let ran = self.run(arguments).await;
        assert_eq!(ran.code, Some(0), "{arguments:?}: {ran:?}");
        ran.stdout.trim_end().to_owned()
    }

    pub(super) async fn json_of(&self, arguments: &[&str]) -> Value {
        let text = self.says_ok(&[arguments, &["-o", "json"]].concat()).await;
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{arguments:?}: {error}: {text}"))
    }
}

#[tokio::test]
async fn queues_are_listed_paused_by_pattern_bounded_and_purged() {
    let (dev, _folder) = dev().await;
    dev.pushed("mail.fast", 2).await;
    dev.pushed("mail.slow", 1).await;
    dev.pushed("reports", 1).await;
    let names = dev.says_ok(&["queue", "list", "-o", "ids"]).await;
    for name in ["mail.fast", "mail.slow", "reports"] {
        assert!(names.lines().any(|line| line == name), "{names}");
    }
    let planned = dev.says_ok(&["queue", "pause", "--matching", "mail.*", "--dry-run"]).await;
    assert_eq!(planned, "would pause mail.fast\nwould pause mail.slow");
    assert_eq!(dev.json_of(&["queue", "show", "mail.fast"]).await["queue"]["paused"], false);
    assert_eq!(
        dev.says_ok(&["queue", "pause", "--matching", "mail.*"]).await,
        "mail.fast paused\nmail.slow paused"
    );
    assert_eq!(dev.json_of(&["queue", "show", "mail.fast"]).await["queue"]["paused"], true);
    let fetched =
        dev.post("/ojs/v1/workers/fetch", &json!({"queues": ["mail.fast", "reports"], "count": 9})).await;
    assert_eq!(fetched["jobs"].as_array().unwrap().len(), 1, "{fetched}");
    assert_eq!(dev.says_ok(&["queue", "resume", "mail.fast"]).await, "mail.fast resumed");
    assert!(dev.says_ok(&["queue", "show", "mail.fast"]).await.contains("available    2"));
    dev.says_ok(&["queue", "set", "mail.fast", "--max-depth", "2"]).await;
    let refused = dev.run(&["job", "push", "--type", "mail.send", "--queue", "mail.fast"]).await;
    assert_ne!(refused.code, Some(0), "{refused:?}");
    assert!(refused.stderr.contains("mail.fast"), "{refused:?}");
    let nothing = dev.run(&["queue", "set", "mail.fast"]).await;
    assert_eq!(nothing.code, Some(2), "{nothing:?}");
    dev.says_ok(&["job", "cancel", "--queue", "mail.fast"]).await;
    let planned = dev.says_ok(&["queue", "purge", "mail.fast", "--state", "cancelled", "--dry-run"]).await;
    assert_eq!(planned, "2 cancelled jobs would be deleted");
    assert_eq!(
        dev.says_ok(&["queue", "purge", "mail.fast", "--state", "cancelled"]).await,
        "2 cancelled jobs deleted"
    );
}

#[tokio::test]
async fn jobs_are_cancelled_by_filter_after_a_preview() {
    let (dev, _folder) = dev().await;
    dev.pushed("old", 3).await;
    let kept = dev.pushed("new", 1).await;
    assert_eq!(dev.says_ok(&["job", "cancel", "--queue", "old", "--dry-run"]).await, "would cancel 3 jobs");
    assert_eq!(dev.says_ok(&["job", "cancel", "--queue", "old"]).await, "3 of 3 jobs cancelled");
    assert_eq!(dev.says_ok(&["job", "list", "--state", "available", "-o", "ids"]).await, kept[0]);
    let bare = dev.run(&["job", "cancel"]).await;
    assert_eq!(bare.code, Some(2), "neither ids nor a filter must not mean everything: {bare:?}");
}

#[tokio::test]
async fn dead_letters_are_listed_retried_and_deleted() {
    let (dev, _folder) = dev().await;
    let ids = dev.pushed("mail", 3).await;
    dev.fails_all("mail", 3).await;
    let table = dev.says_ok(&["dead-letter", "list"]).await;
    assert!(table.contains("smtp_down: the mail server is away"), "{table}");
    let mut listed: Vec<String> =
        dev.says_ok(&["dead-letter", "list", "-o", "ids"]).await.lines().map(str::to_owned).collect();
    listed.sort();
    assert_eq!(listed, ids);
    assert_eq!(
        dev.says_ok(&["dead-letter", "retry", "--queue", "mail", "--dry-run"]).await,
        "would retry 3 jobs"
    );
    assert_eq!(dev.says_ok(&["dead-letter", "retry", &ids[0]]).await, format!("{} available again", ids[0]));
    assert_eq!(dev.json_of(&["job", "get", &ids[0]]).await["attempt"], 0);
    assert_eq!(dev.says_ok(&["dead-letter", "delete", &ids[1]]).await, format!("{} deleted", ids[1]));
    assert_eq!(dev.run(&["job", "get", &ids[1]]).await.code, Some(4));
    assert_eq!(dev.says_ok(&["dead-letter", "retry", "--all"]).await, "1 of 1 jobs available again");
    assert_eq!(dev.says_ok(&["dead-letter", "list", "-o", "ids"]).await, "");
}

#[tokio::test]
async fn cron_entries_are_made_paused_triggered_and_deleted() {
    let (dev, _folder) = dev().await;
    let made = dev
        .says_ok(&[
            "cron",
            "apply",
            "nightly",
            "--at",
            "0 3 * * *",
            "--zone",
            "Europe/Berlin",
            "--type",
            "report.build",
        ])
        .await;
    assert!(made.starts_with("nightly runs next at 2") && made.ends_with("(Europe/Berlin)"), "{made}");
    let listed = dev.json_of(&["cron", "list"]).await;
    assert_eq!((&listed[0]["name"], &listed[0]["expression"]), (&json!("nightly"), &json!("0 3 * * *")));
    assert_eq!(dev.says_ok(&["cron", "pause", "nightly"]).await, "nightly paused");
    assert!(dev.says_ok(&["cron", "list"]).await.contains("paused"));
    assert_eq!(dev.says_ok(&["cron", "resume", "--matching", "night*"]).await, "nightly resumed");
    dev.says_ok(&["cron", "trigger", "nightly"]).await;
    let jobs = dev.json_of(&["cron", "history", "nightly"]).await;
    assert_eq!(jobs[0]["type"], "report.build", "{jobs}");
    let wrong = dev.run(&["cron", "apply", "broken", "--at", "99 25 32 13 8", "--type", "a.b"]).await;
    assert_ne!(wrong.code, Some(0), "{wrong:?}");
    assert_eq!(dev.says_ok(&["cron", "delete", "nightly"]).await, "nightly deleted");
    assert_eq!(dev.says_ok(&["cron", "list", "-o", "ids"]).await, "");
}

#[tokio::test]
async fn workflows_are_started_followed_and_cancelled() {
    let (dev, folder) = dev().await;
    let chain = json!({"type": "chain", "name": "release", "steps": [
        {"type": "build.all", "args": [], "options": {"queue": "build"}},
        {"type": "ship.it", "args": [], "options": {"queue": "build"}},
    ]});
    std::fs::write(folder.path().join("chain.json"), chain.to_string()).unwrap();
    let id = dev.says_ok(&["workflow", "start", "chain.json"]).await;
    let fetched = dev.post("/ojs/v1/workers/fetch", &json!({"queues": ["build"]})).await;
    dev.post("/ojs/v1/workers/ack", &json!({"job_id": fetched["jobs"][0]["id"], "result": 1})).await;
    let table = dev.says_ok(&["workflow", "list"]).await;
    assert!(table.contains("1 of 2"), "{table}");
    let shown = dev.says_ok(&["workflow", "get", &id]).await;
    assert!(shown.contains("build.all") && shown.contains("ship.it"), "{shown}");
    assert_eq!(dev.says_ok(&["workflow", "cancel", &id]).await, format!("{id} cancelled"));
    assert_eq!(dev.json_of(&["workflow", "get", &id]).await["state"], "cancelled");
    assert_eq!(dev.run(&["workflow", "cancel", &id]).await.code, Some(5));
}

#[tokio::test]
async fn groups_and_batches_are_shown_with_a_row_for_each_job_and_callback() {
    let (dev, folder) = dev().await;
    let job = |name: &str| json!({"type": name, "args": [], "options": {"queue": "build"}});
    let group = json!({"type": "group", "jobs": [job("thumb.small"), job("thumb.large")]});
    let batch = json!({"type": "batch", "jobs": [job("mail.send")],
                       "callbacks": {"on_complete": job("mail.report")}});
    for (name, body, parts) in [
        ("group.json", group, &["1  ", "thumb.small", "2  ", "thumb.large", "enqueued", "available"][..]),
        ("batch.json", batch, &["1  ", "mail.send", "on_complete", "mail.report", "waiting"]),
    ] {
        std::fs::write(folder.path().join(name), body.to_string()).unwrap();
        let id = dev.says_ok(&["workflow", "start", name]).await;
        let shown = dev.says_ok(&["workflow", "get", &id]).await;
        for part in parts {
            assert!(shown.contains(part), "{part:?} is missing: {shown}");
        }
        assert_eq!(shown.lines().count(), 2 + 2, "two rows below the headings: {shown}");
    }
}

#[tokio::test]
async fn webhooks_are_added_rotated_and_deleted_and_show_their_secret_once() {
    let (dev, _folder) = dev().await;
    let added =
        dev.json_of(&["webhook", "add", "https://example.com/hook", "--events", "job.completed"]).await;
    let (id, secret) = (added["id"].as_str().unwrap(), added["secret"].as_str().unwrap());
    assert!(secret.len() > 20, "{added}");
    let listed = dev.says_ok(&["webhook", "list", "-o", "json"]).await;
    assert!(listed.contains("example.com") && !listed.contains(secret), "{listed}");
    let rotated = dev.says_ok(&["webhook", "rotate-secret", id]).await;
    assert!(rotated.len() > 20 && rotated != secret, "{rotated}");
    assert_eq!(dev.says_ok(&["webhook", "pause", id]).await, format!("{id} paused"));
    assert_eq!(dev.says_ok(&["webhook", "deliveries", id, "-o", "ids"]).await, "");
    let private = dev.run(&["webhook", "add", "http://127.0.0.1:1/x", "--events", "*"]).await;
    assert_ne!(private.code, Some(0), "{private:?}");
    assert_eq!(dev.says_ok(&["webhook", "delete", id]).await, format!("{id} deleted"));
    assert_eq!(dev.says_ok(&["webhook", "list", "-o", "ids"]).await, "");
}

#[tokio::test]
async fn workers_over_http_receive_quiet_and_drain() {
    let (dev, _folder) = dev().await;
    let beat = json!({"worker_id": "python-1", "active_jobs": []});
    assert_eq!(dev.post("/ojs/v1/workers/heartbeat", &beat).await["state"], "running");
    assert_eq!(dev.says_ok(&["worker", "quiet", "python-1"]).await, "python-1 takes no further jobs");
    assert_eq!(dev.post("/ojs/v1/workers/heartbeat", &beat).await["state"], "quiet");
    assert_eq!(dev.says_ok(&["worker", "drain", "python-1"]).await, "python-1 drains");
    assert_eq!(dev.post("/ojs/v1/workers/heartbeat", &beat).await["state"], "terminate");
}
