//! Ports that stay reserved while their server is down.

use std::fs::{File, OpenOptions};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU16, Ordering};

/// Below the range from which the system takes the ports of outgoing connections (32768 on Linux). A port of that range
/// could be taken by a client while its server restarts, even by a client that connects to that very port.
const FIRST: u16 = 20_000;
const COUNT: u16 = 10_000;

/// A port of `127.0.0.1` that no other test gets, in this process or in another, until this value is dropped.
#[derive(Debug)]
pub(super) struct Port {
    pub(super) number: u16,
    // The lock goes with the file, also when the process is killed.
    _lock: File,
}

impl Port {
    /// Reserves a free one.
    pub(super) fn reserve() -> Self {
        static NEXT: AtomicU16 = AtomicU16::new(0);
        let folder = std::env::temp_dir().join(format!("turnstone-ports-{}", super::programs::user_id()));
        std::fs::create_dir_all(&folder).expect("a folder for the locks of ports");
        let start = u16::try_from(std::process::id() % u32::from(COUNT)).unwrap_or_default();
        for _ in 0..COUNT {
            let step = NEXT.fetch_add(1, Ordering::Relaxed) % COUNT;
            let number = FIRST + (start + step) % COUNT;
            let open = OpenOptions::new()
                .create(true)
                .truncate(false)
                .write(true)
                .open(folder.join(number.to_string()));
            let Ok(lock) = open else { continue };
            if lock.try_lock().is_ok() && is_free(number) {
                return Self { number, _lock: lock };
            }
        }
        panic!("no port from {FIRST} to {} is free on 127.0.0.1", FIRST + COUNT - 1);
    }

    pub(super) fn addr(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.number).into()
    }
}

/// Whether nobody listens there. Asked as a client: a listener of our own would for moments live on in the programs that
/// this process is just starting, and keep the port from its server.
fn is_free(port: u16) -> bool {
    TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err()
}
