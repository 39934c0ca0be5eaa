//! A PostgreSQL cluster that is restored from a backup, as OPERATING says.

use super::{Api, Site};
use serde_json::Value;
use turnstone_tests::servers::Postgres;
use turnstone_tests::{Reply, wait};

/// Returns the ids of all events after a cursor, and the cursor of the last one.
async fn events(api: &Api<'_>, cursor: &str) -> (Vec<(String, String)>, String) {
    let http = turnstone_tests::http::client();
    let (mut found, mut cursor) = (Vec::new(), cursor.to_owned());
    loop {
        let url = format!("{}/ojs/v1/events?limit=100&after={cursor}", api.url);
        let page: Value = http.get(url).send().await.unwrap().json().await.unwrap();
        let text = |event: &Value, name: &str| event[name].as_str().unwrap().to_owned();
        found.extend(
            page["events"].as_array().unwrap().iter().map(|event| (text(event, "id"), text(event, "type"))),
        );
        cursor = page["cursor"].as_str().unwrap().to_owned();
        if page["has_more"] != true {
            return (found, cursor);
        }
    }
}

/// The backup is taken while everything runs. What ran then completes after the restore, and readers of events continue
/// with their cursors. So they do on a dump in the same cluster.
#[tokio::test]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
async fn a_restored_cluster_continues() {
    let server = Postgres::own().await;
    let database = server.database().await;
    let name = database.name.clone();
    // A call of the second job hangs until its worker is gone.
    let calls = std::sync::atomic::AtomicUsize::new(0);
    let script = move |_: &Value| match calls.fetch_add(1, std::sync::atomic::Ordering::SeqCst) {
        1 => Reply::Hang,
        _ => Reply::text("done"),
    };
    let mut site = Site::over(database, script).await;
    assert_eq!(site.run(&["migrate"]).await.code, Some(0));
    let scheduler = site.scheduler().await;
    let worker = site.worker("before", &["--lease", "1s", "--drain-grace", "1s"]).await;
    let api = site.api().await;
    let first = api.push().await;
    api.event(&first, |name, _| name == "job.completed").await;
    let second = api.push().await;
    site.models.seen(2).await;
    wait::until("the feed has the second job", async || {
        events(&api, "").await.0.iter().filter(|(_, name)| name.ends_with("job.enqueued")).count() == 2
    })
    .await;
    let (before, cursor) = events(&api, "").await;
    let restored = server.restored_from_backup().await;
    for program in [worker, scheduler, api.program] {
        program.stop().await;
    }
    server.stop_immediate().await;

    site.database = restored.named(&name);
    let checked = site.run(&["doctor", "--data"]).await;
    assert_eq!(checked.code, Some(0), "{checked:?}");
    let (scheduler, worker, api) =
        (site.scheduler().await, site.worker("after", &[]).await, site.api().await);
    api.event(&second, |name, _| name == "job.completed").await;
    assert_eq!(api.job(&first).await["state"], "completed");
    let ended = |events: &[(String, String)]| events.iter().any(|(_, name)| name.ends_with("job.completed"));
    wait::until("the feed has the end of the second job", async || ended(&events(&api, &cursor).await.0))
        .await;
    let (all, end) = events(&api, "").await;
    assert_eq!(all[..before.len()], before, "the events of the backup have their order and their ids");
    assert_eq!(
        all[before.len()..],
        events(&api, &cursor).await.0,
        "a cursor of before continues behind them"
    );
    for program in [worker, scheduler, api.program] {
        program.stop().await;
    }

    site.database = restored.restored_from_dump(&site.database).await;
    let (scheduler, worker, api) =
        (site.scheduler().await, site.worker("dumped", &[]).await, site.api().await);
    assert_eq!(events(&api, "").await.0, all);
    let third = api.push().await;
    api.event(&third, |name, _| name == "job.completed").await;
    wait::until("the feed has the third job", async || ended(&events(&api, &end).await.0)).await;
    for program in [worker, scheduler, api.program] {
        program.stop().await;
    }
}

/// Returns the status and the body of a page of events.
async fn page(api: &Api<'_>, after: &str) -> (u16, Value) {
    let http = turnstone_tests::http::client();
    let reply = http.get(format!("{}/ojs/v1/events?after={after}", api.url)).send().await.unwrap();
    (reply.status().as_u16(), reply.json().await.unwrap())
}

/// Reads on after each of three cursors: one of the copy, one that only the lost life had, and that of the event which replaced it.
async fn assert_nothing_is_silent(api: &Api<'_>, kept: &str, lost: &str) {
    let new = api.push().await;
    let (status, refused) = page(api, lost).await;
    let error = &refused["error"];
    assert_eq!((status, &error["code"]), (409, &"cursor_lost".into()), "{refused}");
    assert_eq!(error["details"]["begin"], "evt_0.0.0");
    let (status, rest) = page(api, kept).await;
    assert_eq!((status, &rest["events"][0]["subject"]), (200, &new.as_str().into()), "{rest}");
    let url = format!("{}/ojs/v1/events/stream", api.url);
    let reading = turnstone_tests::sse::read(&url, Some(lost), |seen| {
        seen.last().is_some_and(|event| event.data.contains(&new))
    });
    let seen = wait::output("the events after a reset", reading).await;
    assert_eq!(seen[0].event, "reset");
}

/// A second life of a database begins from a backup, and a third from a dump in a new cluster. Both reuse the numbers of
/// transactions and jobs that the first life gave.
#[tokio::test]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
async fn a_restored_database_refuses_cursors_of_events_that_it_lacks() {
    let server = Postgres::own().await;
    let database = server.database().await;
    let name = database.name.clone();
    let mut site = Site::over(database, |_: &Value| Reply::text("done")).await;
    assert_eq!(site.run(&["migrate"]).await.code, Some(0));
    let api = site.api().await;
    api.push().await;
    let (_, kept) = events(&api, "evt_0.0.0").await;
    let restored = server.restored_from_backup().await;
    let another = Postgres::own().await;
    let dumped = another.restored_from_dump(&site.database).await;
    api.push().await;
    let (new, lost) = events(&api, &kept).await;
    assert!(!new.is_empty(), "the first life went on");
    api.program.stop().await;
    server.stop_immediate().await;
    for database in [restored.named(&name), dumped] {
        site.database = database;
        let api = site.api().await;
        assert_nothing_is_silent(&api, &kept, &lost).await;
        api.program.stop().await;
    }
}
