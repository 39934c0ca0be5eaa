//! The probes of processes without an API.

use super::Site;
use crate::program::Program;
use turnstone_tests::{Reply, wait};

/// Starts a service with probes, and returns their address.
async fn probed(site: &Site, arguments: &[&str]) -> (Program, String) {
    let env = [("DATABASE_URL", site.database.url.as_str()), ("TURNSTONE_LOG__FILTER", "info")];
    let bind = ["--metrics-bind", "127.0.0.1:0"];
    let mut program = Program::start(site.path(), &[arguments, &bind].concat(), &env);
    let said = program.warns("metrics are read at ").await;
    let rest = said.split("metrics are read at ").nth(1).unwrap();
    let url = rest.split("/metrics").next().unwrap().to_owned();
    program.first_line("turnstone ").await;
    (program, url)
}

async fn get(url: &str, path: &str) -> Option<(u16, String)> {
    let http = turnstone_tests::http::client();
    let answer = http.get(format!("{url}{path}")).send().await.ok()?;
    Some((answer.status().as_u16(), answer.text().await.ok()?))
}

#[tokio::test]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
async fn workers_and_schedulers_answer_probes_until_they_have_drained() {
    let site = Site::migrated(|_| Reply::Hang).await;
    let (scheduler, of_scheduler) = probed(&site, &["scheduler"]).await;
    let (mut worker, of_worker) =
        probed(&site, &["worker", "--name", "w", "--lease", "10m", "--drain-grace", "10m"]).await;
    for url in [&of_scheduler, &of_worker] {
        for path in ["/livez", "/readyz"] {
            let (status, body) = get(url, path).await.expect("an answer");
            assert_eq!((status, body.as_str()), (200, r#"{"status":"ok"}"#), "{path}");
        }
        assert_eq!(get(url, "/metrics").await.map(|(status, _)| status), Some(200));
        assert_eq!(get(url, "/ojs/v1/jobs").await.map(|(status, _)| status), Some(404), "no other path");
    }
    scheduler.stop().await;
    let api = site.api().await;
    api.push().await;
    site.asked().await;
    worker.signal("TERM");
    wait::until("a worker that drains is not ready", async || {
        get(&of_worker, "/readyz").await == Some((503, r#"{"status":"draining"}"#.to_owned()))
    })
    .await;
    assert_eq!(
        get(&of_worker, "/livez").await.map(|(status, _)| status),
        Some(200),
        "it lives until its end"
    );
    worker.signal("INT");
    assert_eq!(worker.ended().await, Some(130));
    api.program.stop().await;
}
