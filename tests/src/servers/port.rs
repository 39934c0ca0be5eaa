//! Ports that stay reserved while their server is down. A test that needs a port's number before a server
//! listens there reserves it here. Without that, another process may take a released port at any moment.

use std::fs::{File, OpenOptions};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU16, Ordering};

/// The first port, below the range for outgoing connections (from 32768 on Linux). A client could take a port
/// of that range while its server restarts, even a client that connects to that very port.
const FIRST: u16 = 20_000;
const COUNT: u16 = 10_000;

/// A port of `127.0.0.1` that no other test gets, in any process, until this value is dropped.
#[derive(Debug)]
pub struct Port {
    number: u16,
    // The lock is released with the file, even when the process is killed.
    _lock: File,
}

impl Port {
    /// Reserves a free port.
    ///
    /// # Panics
    /// When every port of the range is taken.
    pub fn reserve() -> Self {
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

    /// Returns the port's number.
    pub fn number(&self) -> u16 {
        self.number
    }

    /// Returns the port's address.
    pub fn addr(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.number).into()
    }
}

/// Returns true if no process listens there. It connects as a client. A listener of its own would live on for
/// moments in programs that this process is starting, and would keep the port from its server.
fn is_free(port: u16) -> bool {
    TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reserved_port_is_not_given_out_again() {
        let reserved: Vec<Port> = (0..32).map(|_| Port::reserve()).collect();
        let mut numbers: Vec<u16> = reserved.iter().map(Port::number).collect();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), 32);
        let folder =
            std::env::temp_dir().join(format!("turnstone-ports-{}", super::super::programs::user_id()));
        let lock = File::open(folder.join(numbers[0].to_string())).unwrap();
        assert!(lock.try_lock().is_err(), "another process could reserve it as well");
        drop(reserved);
        assert!(lock.try_lock().is_ok(), "it stays reserved for ever");
    }

    #[test]
    fn a_port_on_which_something_listens_is_not_reserved() {
        let port = Port::reserve();
        let _listener = std::net::TcpListener::bind(port.addr()).unwrap();
        assert!(!is_free(port.number()));
    }
}
