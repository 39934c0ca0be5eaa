//! Connections are taken away, and cannot be had again.

use super::site::{Site, met};
use sqlx::{Connection as _, PgConnection};

#[tokio::test]
async fn a_fleet_goes_on_when_its_connections_are_terminated_again_and_again() {
    let site = Site::start(&[]).await;
    let fleet = site.fleet().await;
    let load = site.load(&fleet);
    let mut ended = 0;
    for _ in 0..20 {
        site.progress(2).await;
        ended += site.postgres.terminate_connections(&site.database).await;
    }
    assert!(ended >= 20, "only {ended} connections were terminated");
    site.all_at_work(&fleet).await;
    site.ends_well(load, fleet).await;
}

/// Takes every connection that the server still gives.
async fn take_all(site: &Site, taken: &mut Vec<PgConnection>) {
    while let Ok(connection) = PgConnection::connect(&site.database.url).await {
        taken.push(connection);
    }
}

#[tokio::test]
async fn a_fleet_goes_on_when_idle_connections_had_taken_every_place() {
    let site = Site::start(&[("max_connections", "320")]).await;
    let mut fleet = site.fleet().await;
    let load = site.load(&fleet);
    site.progress(20).await;
    let mut idle = Vec::new();
    take_all(&site, &mut idle).await;
    assert!(idle.len() >= 280, "only {} idle connections were had", idle.len());

    // The fleet's own connections end, and others take their places before the fleet does.
    let ours =
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'turnstone'";
    let without = met("the workers are without a database", async || {
        let silent = |words: &str| fleet.workers.iter().all(|worker| worker.warned().contains(words));
        silent("the database does not answer").then_some(())
    });
    let taking = async {
        loop {
            site.number(ours).await;
            take_all(&site, &mut idle).await;
        }
    };
    tokio::select! {
        () = without => {}
        () = taking => {}
    }
    assert!(idle.len() >= 300, "only {} idle connections", idle.len());
    drop(idle);
    for worker in &mut fleet.workers {
        worker.warns("the database answers again").await;
    }
    site.all_at_work(&fleet).await;
    site.ends_well(load, fleet).await;
}
