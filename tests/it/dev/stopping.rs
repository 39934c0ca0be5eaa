//! A data directory has one user at a time; one signal drains, two stop.

use super::{Dev, run_in};
use std::path::Path;

/// A provider that answers after ten minutes.
fn slow(folder: &Path) {
    let settings = "[providers.script]\nkind = 'scripted'\nscript = 'script.yaml'\n[models]\ndefault_model = 'm'\n\
                    [worker]\ndrain_grace_ms = 600000\n";
    std::fs::write(folder.join("turnstone.toml"), settings).unwrap();
    std::fs::write(folder.join("script.yaml"), "rules:\n  - answer: {text: late, delay_ms: 600000}\n")
        .unwrap();
}

#[tokio::test]
async fn a_data_directory_has_one_user() {
    let folder = turnstone_tests::scratch::folder();
    let mut dev = Dev::start(folder.path(), &[]).await;
    let second = run_in(folder.path(), &["dev", "--data", "data", "--bind", "127.0.0.1:0"]).await;
    assert_eq!(second.code, Some(5), "{second:?}");
    let words = format!("in use by process {}", dev.program.pid());
    assert!(second.stderr.contains(&words) && second.stderr.contains("--data"), "{second:?}");
    assert!(second.stdout.is_empty(), "{second:?}");
    dev.get("/livez").await;
    dev.signal("INT");
    assert_eq!(dev.ended().await, Some(0));
}

#[tokio::test]
async fn an_address_that_is_taken_or_open_to_all_is_refused() {
    let folder = turnstone_tests::scratch::folder();
    let taken = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let refused = run_in(folder.path(), &["dev", "--data", "data", "--bind", &address]).await;
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stderr.contains(&address) && refused.stderr.contains("--bind"), "{refused:?}");
    let refused = run_in(folder.path(), &["dev", "--data", "data", "--bind", "0.0.0.0:0"]).await;
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("API key"), "{refused:?}");
}

#[tokio::test]
async fn a_second_signal_stops_at_once_and_loses_nothing() {
    let folder = turnstone_tests::scratch::folder();
    slow(folder.path());
    let mut dev = Dev::start(folder.path(), &[]).await;
    let id = dev
        .run(&["job", "push", "--type", "agent.slow", "--args", "[\"hi\"]", "--set", "ext_agent_model=m"])
        .await;
    assert_eq!(id.code, Some(0), "{id:?}");
    let id = id.stdout.trim().to_owned();
    dev.events(&id, |_, event| event["data"]["phase"] == "resol").await;
    dev.signal("INT");
    dev.warns("stopping").await;
    // The provider answers after ten minutes, and a drain waits that long.
    dev.signal("INT");
    assert_eq!(dev.ended().await, Some(130));

    let mut dev = Dev::start(folder.path(), &[]).await;
    dev.says("1 job of an earlier run resumes").await;
    dev.events(&id, |name, event| name == "job.started" && event["data"]["attempt"] == 2).await;
    let cancelled = dev.run(&["job", "cancel", &id]).await;
    assert_eq!(cancelled.code, Some(0), "{cancelled:?}");
    dev.signal("INT");
    assert_eq!(dev.ended().await, Some(0));
}
