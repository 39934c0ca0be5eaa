//! A statement that takes too long is ended by the database, directly and through a pooler.

use sqlx::{Connection as _, PgConnection};
use std::time::Duration;
use turnstone_store::PostgresOptions;
use turnstone_tests::Fleet;
use turnstone_tests::servers::{PgBouncer, Postgres};

#[tokio::test]
#[cfg_attr(any(no_postgres, no_pgbouncer), ignore = "needs PostgreSQL and PgBouncer")]
async fn a_statement_that_takes_too_long_is_ended() {
    let postgres = Postgres::shared().await;
    for is_pooled in [false, true] {
        let database = postgres.database().await;
        let direct = postgres.url(&database);
        let bouncer = if is_pooled { Some(PgBouncer::start(postgres, &database).await) } else { None };
        let url = bouncer.as_ref().map_or(direct.as_str(), |bouncer| bouncer.url());
        let statement_timeout = Duration::from_millis(300);
        let options =
            PostgresOptions { transaction_pooler: is_pooled, statement_timeout, ..PostgresOptions::new(url) };
        let fleet = Fleet::builder().on_database(database).reached_by(options).workers(0).start().await;
        // A transaction of another process holds the table.
        let mut other = PgConnection::connect(&direct).await.unwrap();
        sqlx::raw_sql("BEGIN; LOCK TABLE freezes IN ACCESS EXCLUSIVE MODE")
            .execute(&mut other)
            .await
            .unwrap();
        let (status, body) = fleet.send(reqwest::Method::GET, "/freeze", "").await;
        assert_eq!((status.as_u16(), &body["error"]["code"]), (503, &"backend_error".into()), "{body}");
        sqlx::raw_sql("ROLLBACK").execute(&mut other).await.unwrap();
        fleet.get("/freeze").await;
        fleet.end().await;
        drop(bouncer);
    }
}
