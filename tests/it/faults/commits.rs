//! A push whose connection breaks in its commit: its client does not know the outcome.

use super::gate::Gate;
use super::load::{client, job, push};
use super::site::{Api, Site};
use std::future::Future;
use tokio::task::JoinHandle;
use turnstone_domain::Ids as _;
use turnstone_domain::ids::SystemIds;
use turnstone_tests::servers::TcpProxy;

/// Pushes a job, and waits until its transaction is in its commit.
async fn pushed(site: &Site, api: &Api, gate: &Gate) -> (String, JoinHandle<Option<u16>>) {
    let id = SystemIds.next();
    let (url, requested) = (api.url.clone(), job(&id));
    let pushing = tokio::spawn(async move { push(&client(), &url, &requested).await });
    gate.reached(site).await;
    (id, pushing)
}

/// Repeats the push with the same id, like a client without an answer. The job exists once.
async fn is_there_once(site: &Site, api: &Api, id: &str) {
    assert_eq!(push(&client(), &api.url, &job(id)).await, Some(409));
    assert_eq!(site.number(&format!("SELECT count(*) FROM jobs WHERE id = '{id}'")).await, 1);
    assert_eq!(site.number("SELECT count(*) FROM jobs").await, 1);
    assert_eq!(site.number(turnstone_tests::journal::EVENTS).await, 1);
}

fn committed(site: &Site) -> impl Future<Output = i64> {
    site.until("the job is committed", "SELECT count(*) FROM jobs", |jobs| jobs == 1)
}

#[tokio::test]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
async fn a_push_that_was_committed_when_the_network_broke_is_accepted_once() {
    let site = Site::start(&[]).await;
    let proxy = TcpProxy::start(site.postgres.addr()).await;
    let mut api = site.api(&site.database.url_at(proxy.addr())).await;
    let gate = Gate::in_commits(&site).await;
    let (id, pushing) = pushed(&site, &api, &gate).await;
    proxy.cut().await;
    gate.open().await;
    committed(&site).await;
    proxy.heal().await;
    assert_eq!(pushing.await.unwrap(), Some(201));
    api.program.warns("its outcome is looked up").await;
    is_there_once(&site, &api, &id).await;
    api.program.stop().await;
}

#[tokio::test]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
async fn a_push_whose_commit_was_terminated_is_retried_and_accepted_once() {
    let site = Site::start(&[]).await;
    let api = site.api(&site.database.url).await;
    let gate = Gate::in_commits(&site).await;
    let (id, pushing) = pushed(&site, &api, &gate).await;
    gate.terminate_waiting(&site).await;
    gate.reached(&site).await;
    assert_eq!(site.number("SELECT count(*) FROM jobs").await, 0, "it was committed after all");
    gate.open().await;
    assert_eq!(pushing.await.unwrap(), Some(201));
    is_there_once(&site, &api, &id).await;
    api.program.stop().await;
}

#[tokio::test]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
async fn a_push_whose_api_was_killed_in_the_commit_can_be_repeated() {
    let site = Site::start(&[]).await;
    let mut api = site.api(&site.database.url).await;
    let gate = Gate::in_commits(&site).await;
    let (id, pushing) = pushed(&site, &api, &gate).await;
    api.program.signal("KILL");
    assert_eq!(api.program.ended().await, None);
    assert_eq!(pushing.await.unwrap(), None, "no answer was possible");
    gate.open().await;
    committed(&site).await;
    let api = site.api(&site.database.url).await;
    is_there_once(&site, &api, &id).await;
    api.program.stop().await;
}
