//! Without an API key a server listens on loopback addresses only.

use super::Dev;
use crate::program::{Program, run};
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::Duration;
use turnstone_tests::Place;
use turnstone_tests::servers::Postgres;

/// Returns an address of this machine that other machines can reach, if there is one. The routing table is enough, so
/// no packet is sent.
fn outside() -> Option<IpAddr> {
    let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
    socket.connect("192.0.2.1:9").ok()?;
    Some(socket.local_addr().ok()?.ip()).filter(|ip| !ip.is_loopback() && !ip.is_unspecified())
}

/// Returns true when a server listens at this address.
fn is_open(address: SocketAddr) -> bool {
    TcpStream::connect_timeout(&address, Duration::from_secs(5)).is_ok()
}

/// Returns the addresses on which a process listens, from the kernel's list.
fn listening(program: &Program) -> Vec<SocketAddr> {
    let folder = format!("/proc/{}", program.pid());
    let links = std::fs::read_dir(format!("{folder}/fd"))
        .unwrap()
        .filter_map(|entry| entry.unwrap().path().read_link().ok());
    let sockets: BTreeSet<String> = links
        .filter_map(|link| Some(link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned()))
        .collect();
    let mut found = Vec::new();
    for table in ["tcp", "tcp6"] {
        let text = std::fs::read_to_string(format!("{folder}/net/{table}")).unwrap_or_default();
        for line in text.lines().skip(1) {
            let fields: Vec<&str> = line.split_whitespace().collect();
            // 0A is LISTEN; the tenth field is the inode of the socket.
            if fields[3] == "0A" && sockets.contains(fields[9]) {
                found.push(address(fields[1]));
            }
        }
    }
    found
}

/// Parses `0100007F:1F90` as `127.0.0.1:8080`: words of 32 bits in the machine's byte order.
fn address(text: &str) -> SocketAddr {
    let (ip, port) = text.split_once(':').unwrap();
    let words = (0..ip.len()).step_by(8).map(|at| u32::from_str_radix(&ip[at..at + 8], 16).unwrap());
    let bytes: Vec<u8> = words.flat_map(u32::to_ne_bytes).collect();
    let ip = match <[u8; 4]>::try_from(bytes.as_slice()) {
        Ok(four) => IpAddr::from(Ipv4Addr::from(four)),
        Err(_) => IpAddr::from(Ipv6Addr::from(<[u8; 16]>::try_from(bytes.as_slice()).unwrap())),
    };
    SocketAddr::new(ip, u16::from_str_radix(port, 16).unwrap())
}

#[tokio::test]
#[cfg_attr(no_postgres, ignore = "needs PostgreSQL")]
async fn without_a_key_an_address_that_others_can_reach_is_refused() {
    let folder = turnstone_tests::scratch::folder();
    let database = Postgres::shared().await.database().await;
    Place::from(&database).migrate().await;
    // The port is taken: a server that tried to listen would name it.
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let mut binds = vec![format!("0.0.0.0:{port}"), "0.0.0.0:0".to_owned(), "[::]:0".to_owned()];
    binds.extend(outside().map(|ip| SocketAddr::new(ip, 0).to_string()));
    for command in [&["dev", "--data", "data"] as &[&str], &["api"]] {
        for bind in &binds {
            let arguments = [command, &["--bind", bind]].concat();
            let ran = run(folder.path(), &arguments, &[("DATABASE_URL", &database.url)]).await;
            assert_eq!(ran.code, Some(2), "{arguments:?}: {ran:?}");
            for words in [bind.as_str(), "127.0.0.1", "API key"] {
                assert!(ran.stderr.contains(words), "{arguments:?} does not name {words:?}: {ran:?}");
            }
            assert!(ran.stdout.is_empty(), "{arguments:?} says that it listens: {ran:?}");
        }
    }
}

#[tokio::test]
async fn without_a_key_a_server_listens_on_loopback_alone() {
    let folder = turnstone_tests::scratch::folder();
    let settings = run(folder.path(), &["config", "show"], &[]).await;
    let line = settings.stdout.lines().find(|line| line.starts_with("server.bind"));
    assert!(
        line.is_some_and(|line| line.contains("127.0.0.1:8080") && line.ends_with("default")),
        "{line:?}"
    );
    let dev = Dev::start(folder.path(), &[]).await;
    let addresses = listening(&dev.program);
    assert!(dev.url.ends_with(&addresses[0].to_string()), "{} and {addresses:?}", dev.url);
    assert!(addresses.iter().all(|address| address.ip().is_loopback()), "{addresses:?}");
    let port = addresses[0].port();
    assert!(is_open(addresses[0]));
    if let Some(ip) = outside() {
        assert!(!is_open(SocketAddr::new(ip, port)), "{ip}:{port} answers");
    }
}

/// The counterpart: an address that is reachable is found.
#[tokio::test]
async fn with_a_key_a_server_listens_at_the_configured_address() {
    let folder = turnstone_tests::scratch::folder();
    let env = [
        ("TURNSTONE_SERVER__API_KEYS", "env:KEY_OF_MINE"),
        ("KEY_OF_MINE", "a-key-of-mine-with-32-characters"),
    ];
    let mut server = Program::start(folder.path(), &["dev", "--data", "data", "--bind", "0.0.0.0:0"], &env);
    server.says("turnstone listens on ").await;
    let addresses = listening(&server);
    assert!(addresses[0].ip().is_unspecified(), "{addresses:?}");
    if let Some(ip) = outside() {
        assert!(is_open(SocketAddr::new(ip, addresses[0].port())), "{ip} does not answer at {addresses:?}");
    }
    server.stop().await;
}
