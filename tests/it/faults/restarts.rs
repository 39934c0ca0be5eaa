//! The database goes away as it does when its machine crashes, and comes back.

use super::site::Site;

#[tokio::test]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
async fn a_fleet_goes_on_when_the_database_is_back_from_a_crash() {
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
