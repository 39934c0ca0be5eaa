//! The servers of the harness: each starts, answers, breaks on request, and leaves nothing behind.

use futures::future::join_all;
use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use turnstone_tests::Place;
use turnstone_tests::servers::{PgBouncer, Postgres, Redis, TcpProxy, WITH_STANDBYS, faketime_path, find};
use turnstone_tests::wait;

/// Returns the `psql` of the server: not every system has it in the PATH.
fn psql() -> std::path::PathBuf {
    find::postgres_dir().expect("PostgreSQL").join("psql")
}

/// Runs SQL at an address, like any client.
async fn psql_at(url: &str, sql: &str) -> Result<String, String> {
    let mut psql = tokio::process::Command::new(psql());
    let output = psql.args(["-X", "-q", "-A", "-t", url, "-c", sql]).output();
    let output = wait::output("psql ends", output).await.unwrap();
    if output.status.success() {
        Ok(String::from_utf8(output.stdout).unwrap().trim().to_owned())
    } else {
        Err(String::from_utf8(output.stderr).unwrap())
    }
}

#[tokio::test]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
async fn each_test_has_a_database_of_its_own_on_the_shared_server() {
    let postgres = Postgres::shared().await;
    let (one, other) = (postgres.database().await, postgres.database().await);
    psql_at(&one.url, "CREATE TABLE t (n int)").await.unwrap();
    assert!(psql_at(&other.url, "SELECT * FROM t").await.unwrap_err().contains("does not exist"));
    assert_eq!(
        psql_at(&one.url, "SELECT rolsuper FROM pg_roles WHERE rolname = current_user").await.unwrap(),
        "f"
    );
    assert_eq!(postgres.psql(&one, "SHOW fsync; SHOW max_connections;").await, "off\n300");
}

/// A lent database is as the migrations left it in every table and row, whatever the previous test did.
#[tokio::test]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
async fn a_lent_database_is_as_the_migrations_left_it() {
    let postgres = Postgres::shared().await;
    for change in [
        "INSERT INTO queues SELECT * FROM queues WHERE false; DELETE FROM queues",
        "CREATE TABLE odd (n bigint)",
        "ALTER TABLE jobs ADD COLUMN odd bigint",
        "DROP TABLE webhooks CASCADE",
        "UPDATE statistics_mark SET ended_at = 7",
    ] {
        // Several, so that the changed one is among them.
        let lent: Vec<_> = join_all((0..3).map(|_| postgres.migrated())).await;
        for database in &lent {
            let place = Place::from(database);
            assert_eq!(place.number("SELECT count(*) FROM queues").await, 2);
            assert_eq!(place.number("SELECT ended_at FROM statistics_mark").await, 0);
            assert_eq!(place.number("SELECT count(*) FROM webhooks").await, 0);
            let odd =
                "SELECT count(*) FROM information_schema.columns WHERE 'odd' IN (table_name, column_name)";
            assert_eq!(place.number(odd).await, 0);
            place.change(change).await;
        }
    }
}

#[tokio::test]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
async fn postgres_keeps_commits_over_an_immediate_restart() {
    let postgres = Postgres::own_with(&[("max_connections", "23")]).await;
    let db = postgres.database().await;
    psql_at(&db.url, "CREATE TABLE t AS SELECT 7 AS n").await.unwrap();

    postgres.restart_immediate().await;
    assert_eq!(psql_at(&db.url, "SELECT n FROM t").await.unwrap(), "7");
    assert_eq!(postgres.psql(&db, "SHOW max_connections").await, "23");

    postgres.stop_immediate().await;
    assert!(psql_at(&db.url, "SELECT 1").await.unwrap_err().contains("refused"));
    postgres.start_again().await;
    assert_eq!(psql_at(&postgres.url(&db), "SELECT n FROM t").await.unwrap(), "7");
}

#[tokio::test]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
async fn the_connections_of_one_database_can_be_terminated() {
    let postgres = Postgres::shared().await;
    let (one, other) = (postgres.database().await, postgres.database().await);
    let (slow, untouched) = (one.url.clone(), other.url.clone());
    let victim = tokio::spawn(async move { psql_at(&slow, "SELECT pg_sleep(30)").await });
    let bystander =
        tokio::spawn(async move { psql_at(&untouched, "SELECT pg_advisory_lock(1), pg_sleep(1)").await });
    wait::until("the client connects", async || postgres.terminate_connections(&one).await > 0).await;
    assert!(victim.await.unwrap().unwrap_err().contains("terminating connection"));
    assert!(bystander.await.unwrap().is_ok());
}

#[tokio::test]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
async fn a_dropped_server_leaves_no_process_and_no_file() {
    let postgres = Postgres::own().await;
    let db = postgres.database().await;
    let addr = postgres.addr();
    let folder = postgres.psql(&db, "SHOW data_directory").await;
    assert!(std::path::Path::new(&folder).exists());
    drop(postgres);
    assert!(TcpStream::connect(addr).await.is_err(), "the server still listens");
    assert!(!std::path::Path::new(&folder).exists(), "{folder} is still there");
}

#[tokio::test]
#[cfg_attr(no_redis, ignore = "needs Redis")]
async fn redis_can_be_stopped_killed_and_started_again() {
    let redis = Redis::start().await;
    assert_eq!(redis.command(&["SET", "k", "v"]).await, "OK");
    redis.config("maxmemory-policy", "allkeys-lru").await;
    redis.flush().await;
    assert_eq!(redis.command(&["GET", "k"]).await, "");

    let addr: SocketAddr = redis.url().strip_prefix("redis://").unwrap().parse().unwrap();
    redis.stop().await;
    assert!(TcpStream::connect(addr).await.is_err());
    redis.start_again().await;
    redis.command(&["SET", "k", "v"]).await;
    redis.kill().await;
    assert!(TcpStream::connect(addr).await.is_err());
    redis.start_again().await;
    assert_eq!(redis.command(&["GET", "k"]).await, "", "without a file no data survives");
}

#[tokio::test]
#[cfg_attr(no_redis, ignore = "needs Redis")]
async fn redis_keeps_its_data_over_a_kill_when_asked_to() {
    let redis = Redis::start_with(&[("appendonly", "yes"), ("appendfsync", "always")]).await;
    redis.command(&["SET", "k", "v"]).await;
    redis.kill().await;
    redis.start_again().await;
    assert_eq!(redis.command(&["GET", "k"]).await, "v");
}

#[tokio::test]
#[cfg_attr(any(no_postgres, no_pgbouncer), ignore = "needs PostgreSQL and PgBouncer")]
async fn pgbouncer_gives_each_transaction_any_connection() {
    let postgres = Postgres::shared().await;
    let db = postgres.database().await;
    let bouncer = PgBouncer::start(postgres, &db).await;
    psql_at(bouncer.url(), "CREATE TABLE t AS SELECT 7 AS n").await.unwrap();
    assert_eq!(psql_at(&db.url, "SELECT n FROM t").await.unwrap(), "7");

    // In session mode a connected client would keep its connection to the database, unlike here.
    let mut psql = tokio::process::Command::new(psql());
    psql.args(["-X", "-q", "-A", "-t", bouncer.url()]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut staying = psql.kill_on_drop(true).spawn().unwrap();
    let mut requested = staying.stdin.take().unwrap();
    requested.write_all(b"SELECT pg_backend_pid();\n").await.unwrap();
    let mut lines = BufReader::new(staying.stdout.take().unwrap()).lines();
    let pid = wait::output("an answer", lines.next_line()).await.unwrap().unwrap();
    assert_eq!(psql_at(bouncer.url(), "SELECT pg_backend_pid()").await.unwrap(), pid);
}

/// Starts a server that echoes every byte.
async fn echo() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            tokio::spawn(async move {
                let (mut from, mut to) = client.split();
                tokio::io::copy(&mut from, &mut to).await
            });
        }
    });
    addr
}

async fn answer(client: &mut TcpStream, byte: u8) -> std::io::Result<u8> {
    client.write_all(&[byte]).await?;
    wait::output("an answer or an end", client.read_u8()).await
}

#[tokio::test]
async fn a_cut_drops_connections_and_refuses_new_ones_until_it_heals() {
    let proxy = TcpProxy::start(echo().await).await;
    let mut client = TcpStream::connect(proxy.addr()).await.unwrap();
    assert_eq!(answer(&mut client, 1).await.unwrap(), 1);

    proxy.cut().await;
    assert!(answer(&mut client, 2).await.is_err(), "an old connection still answers");
    assert!(TcpStream::connect(proxy.addr()).await.is_err(), "a new connection is accepted");

    proxy.heal().await;
    let mut client = TcpStream::connect(proxy.addr()).await.unwrap();
    assert_eq!(answer(&mut client, 3).await.unwrap(), 3);
}

#[tokio::test]
async fn a_stalled_proxy_forwards_nothing_until_it_heals() {
    let proxy = TcpProxy::start(echo().await).await;
    let mut old = TcpStream::connect(proxy.addr()).await.unwrap();
    assert_eq!(answer(&mut old, 1).await.unwrap(), 1);

    proxy.stall().await;
    let mut new = TcpStream::connect(proxy.addr()).await.unwrap();
    for client in [&mut old, &mut new] {
        client.write_all(&[2]).await.unwrap();
        let nothing = tokio::time::timeout(Duration::from_millis(100), client.read_u8()).await;
        assert!(nothing.is_err(), "bytes came through: {nothing:?}");
    }

    proxy.heal().await;
    for client in [&mut old, &mut new] {
        let late = wait::output("the byte that was held back", client.read_u8()).await;
        assert_eq!(late.unwrap(), 2);
    }
}

#[tokio::test]
async fn a_silenced_connection_carries_nothing_after_the_proxy_heals() {
    let proxy = TcpProxy::start(echo().await).await;
    let mut old = TcpStream::connect(proxy.addr()).await.unwrap();
    assert_eq!(answer(&mut old, 1).await.unwrap(), 1);

    proxy.silence().await;
    let mut new = TcpStream::connect(proxy.addr()).await.unwrap();
    let silent = async |clients: [&mut TcpStream; 2]| {
        for client in clients {
            client.write_all(&[2]).await.unwrap();
            let nothing = tokio::time::timeout(Duration::from_millis(100), client.read_u8()).await;
            assert!(nothing.is_err(), "an answer or an end came through: {nothing:?}");
        }
    };
    silent([&mut old, &mut new]).await;
    proxy.heal().await;
    let mut last = TcpStream::connect(proxy.addr()).await.unwrap();
    assert_eq!(answer(&mut last, 3).await.unwrap(), 3);
    silent([&mut old, &mut new]).await;

    proxy.reset_one_in(1);
    let reset = answer(&mut last, 5).await.unwrap_err();
    assert_eq!(reset.kind(), std::io::ErrorKind::ConnectionReset);
}

#[tokio::test]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
async fn a_standby_that_was_cut_off_is_promoted_without_what_it_missed() {
    let primary = Postgres::own_with(WITH_STANDBYS).await;
    let database = primary.database().await;
    let (stream, address) = (TcpProxy::start(primary.addr()).await, TcpProxy::start(primary.addr()).await);
    let url = database.url_at(address.addr());
    psql_at(&url, "CREATE TABLE t (n int)").await.unwrap();
    let standby = primary.standby("second", stream.addr()).await;
    psql_at(&url, "INSERT INTO t VALUES (1)").await.unwrap();
    primary.until_streams_to("second").await;
    stream.cut().await;
    psql_at(&url, "INSERT INTO t VALUES (2)").await.unwrap();
    assert!(
        psql_at(&standby.url(&database), "INSERT INTO t VALUES (3)").await.unwrap_err().contains("read-only")
    );

    primary.stop_immediate().await;
    standby.promote().await;
    address.switch_to(standby.addr()).await;
    psql_at(&url, "INSERT INTO t VALUES (4)").await.unwrap();
    assert_eq!(psql_at(&url, "SELECT string_agg(n::text, ' ' ORDER BY n) FROM t").await.unwrap(), "1 4");
}

#[tokio::test]
#[cfg_attr(no_faketime, ignore = "needs libfaketime")]
async fn faketime_moves_the_clock_of_a_program() {
    let year = |offset: &str| {
        let mut date = Command::new("date");
        let output =
            date.arg("+%Y").env("LD_PRELOAD", faketime_path()).env("FAKETIME", offset).output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim().parse::<i32>().unwrap()
    };
    assert_eq!(year("+3650d") - year("+0"), 10);
}
