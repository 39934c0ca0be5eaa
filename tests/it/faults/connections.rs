//! Connections are terminated, and new ones are refused.

use super::site::Site;
use sqlx::{Connection as _, PgConnection};

#[tokio::test]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
async fn a_fleet_survives_repeated_terminations_of_its_connections() {
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

#[tokio::test]
#[ignore = "long: places are free again after seconds"]
async fn a_fleet_survives_a_database_without_free_connections() {
    let site = Site::start(&[("max_connections", "320")]).await;
    let mut fleet = site.fleet().await;
    let load = site.load(&fleet);
    site.progress(20).await;
    // The fleet's connections end while it is paused, and other clients use their slots.
    fleet.signal("STOP");
    site.postgres.terminate_connections(&site.database).await;
    let ours = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'turnstone'";
    site.until("the fleet has no connection", ours, |connections| connections == 0).await;
    let mut idle = Vec::new();
    while let Ok(connection) = PgConnection::connect(&site.database.url).await {
        idle.push(connection);
    }
    assert!(idle.len() >= 300, "only {} idle connections were had", idle.len());
    fleet.signal("CONT");
    for worker in &mut fleet.workers {
        worker.warns("the database does not answer").await;
    }
    drop(idle);
    for worker in &mut fleet.workers {
        worker.warns("the database answers again").await;
    }
    site.all_at_work(&fleet).await;
    site.ends_well(load, fleet).await;
}
