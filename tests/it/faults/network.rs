//! The network between one worker and the database breaks, or goes silent.

use super::gate::Gate;
use super::load::{client, job, push};
use super::site::{Fleet, Site};
use std::time::Duration;
use turnstone_domain::Ids as _;
use turnstone_domain::ids::SystemIds;
use turnstone_tests::servers::TcpProxy;
use turnstone_tests::wait;

/// Starts a fleet with one more worker, which reaches the database through a proxy.
async fn with_a_far_worker(site: &Site) -> (Fleet, TcpProxy) {
    let mut fleet = site.fleet().await;
    let proxy = TcpProxy::start(site.postgres.addr()).await;
    fleet.workers.push(site.worker("far", &site.database.url_at(proxy.addr())).await);
    (fleet, proxy)
}

/// Waits until every job that was enqueued before now is completed.
async fn all_until_now(site: &Site) {
    let left =
        format!("SELECT count(*) FROM jobs WHERE state <> 'completed' AND seq <= {}", site.newest().await);
    site.until("other workers complete the far worker's jobs", &left, |left| left == 0).await;
}

#[tokio::test]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
async fn a_worker_that_is_cut_off_continues_when_the_network_returns() {
    let site = Site::start(&[]).await;
    let (fleet, proxy) = with_a_far_worker(&site).await;
    let load = site.load(&fleet);
    for _ in 0..2 {
        site.all_at_work(&fleet).await;
        proxy.cut().await;
        all_until_now(&site).await;
        proxy.heal().await;
    }
    site.all_at_work(&fleet).await;
    site.ends_well(load, fleet).await;
}

#[tokio::test]
#[ignore = "long: silence until connections are given up"]
async fn a_worker_with_a_silent_network_continues_when_it_returns() {
    let site = Site::start(&[]).await;
    let (fleet, proxy) = with_a_far_worker(&site).await;
    let load = site.load(&fleet);
    for _ in 0..2 {
        site.all_at_work(&fleet).await;
        proxy.stall().await;
        all_until_now(&site).await;
        proxy.heal().await;
    }
    site.all_at_work(&fleet).await;
    site.ends_well(load, fleet).await;
}

#[tokio::test]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
async fn a_worker_claims_within_seconds_after_a_black_hole() {
    let site = Site::start(&[]).await;
    let (fleet, proxy) = with_a_far_worker(&site).await;
    let load = site.load(&fleet);
    site.all_at_work(&fleet).await;
    // Longer than the lease; the connections that exist then carry nothing for ever, and neither side is notified.
    proxy.silence().await;
    all_until_now(&site).await;
    proxy.heal().await;
    let claimed = format!(
        "SELECT count(*) FROM journal WHERE names LIKE 'job.started%' AND job_seq > {} \
         AND body::json->0->'event'->'data'->>'worker_id' LIKE 'far%'",
        site.newest().await
    );
    let claims = async || site.number(&claimed).await > 0;
    // On a machine with nothing else to do it takes less than five seconds. With the deadlines of TCP it took a minute.
    wait::until_within("the far worker claims again", Duration::from_secs(20), claims).await;
    site.ends_well(load, fleet).await;
}

#[tokio::test]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
async fn no_read_fails_while_connections_are_reset() {
    let site = Site::start(&[]).await;
    let proxy = TcpProxy::start(site.postgres.addr()).await;
    let api = site.api(&site.database.url_at(proxy.addr())).await;
    let (http, id) = (client(), SystemIds.next());
    assert_eq!(push(&http, &api.url, &job(&id)).await, Some(201));
    // 5 % of the messages to the database reset their connection.
    proxy.reset_one_in(20);
    for path in [format!("/ojs/v1/jobs/{id}"), "/ojs/v1/jobs".to_owned(), "/ojs/v1/queues".to_owned()] {
        for _ in 0..150 {
            let answer = http.get(format!("{}{path}", api.url)).send().await.expect("an answer");
            assert_eq!(answer.status(), 200, "{path}");
        }
    }
    proxy.reset_one_in(0);
    api.program.stop().await;
}

#[tokio::test]
#[ignore = "long: the server needs 25 s to notice a silent client"]
async fn a_worker_that_falls_silent_in_a_transaction_keeps_nothing_locked() {
    let site = Site::start(&[]).await;
    let (api, scheduler) = (site.api(&site.database.url).await, site.scheduler().await);
    let proxy = TcpProxy::start(site.postgres.addr()).await;
    let far = site.worker("far", &site.database.url_at(proxy.addr())).await;
    // Jobs of a queue with a limit are claimed step by step, in a transaction of several statements.
    site.postgres.psql(&site.database, "UPDATE queues SET concurrency = 1000").await;
    let gate = Gate::at_leases(&site).await;
    let id = SystemIds.next();
    assert_eq!(push(&client(), &api.url, &job(&id)).await, Some(201));
    gate.reached(&site).await;
    proxy.stall().await;
    gate.open().await;
    // The far worker's transaction is open in the database, the job's row is locked, and its client cannot end it.
    let idle = "SELECT count(*) FROM pg_stat_activity WHERE state = 'idle in transaction' \
                AND (SELECT count(*) FROM (SELECT 1 FROM jobs FOR UPDATE SKIP LOCKED) AS free) = 0";
    site.until("the transaction waits for its worker", idle, |idle| idle > 0).await;
    let near = site.worker("near", &site.database.url).await;
    all_until_now(&site).await;

    proxy.heal().await;
    let fleet = Fleet { api, scheduler, workers: vec![near, far] };
    let load = site.load(&fleet);
    load.knows(id);
    site.all_at_work(&fleet).await;
    site.ends_well(load, fleet).await;
}
