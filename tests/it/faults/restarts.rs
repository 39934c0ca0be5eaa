//! The database crashes like its machine, and returns.

use super::site::Site;

#[tokio::test]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
async fn a_fleet_continues_after_a_crash_of_the_database() {
    let site = Site::start(&[]).await;
    let fleet = site.fleet().await;
    let load = site.load(&fleet);
    for _ in 0..3 {
        site.progress(20).await;
        site.postgres.restart_immediate().await;
        site.all_at_work(&fleet).await;
    }
    site.ends_well(load, fleet).await;
}
