//! PgBouncer in transaction mode, in front of a private PostgreSQL server.

use super::beside;
use super::database::Database;
use super::port::Port;
use super::postgres::Postgres;
use super::programs::{give_to_server_user, pgbouncer};
use super::supervised::{Recipe, Supervised};
use super::template::ROLE;
use std::net::{Ipv4Addr, TcpStream};
use std::path::Path;
use std::sync::Arc;

/// A PgBouncer whose clients keep a connection for one transaction only. It is stopped when it is dropped.
pub struct PgBouncer {
    _server: Arc<Supervised>,
    _port: Port,
    url: String,
}

impl PgBouncer {
    /// Starts one in front of a database, with PgBouncer's default settings: it keeps 20 connections to the
    /// database.
    pub async fn start(postgres: &Postgres, database: &Database) -> Self {
        let (name, to) = (database.name.clone(), postgres.addr().port());
        let server = beside(move || {
            let server = Supervised::prepare(Recipe {
                name: "PgBouncer",
                command: vec![pgbouncer().into()],
                place: |folder| folder.join("pgbouncer.ini").into(),
                last_signal: "KILL",
                never_as_root: true,
            });
            let folder = server.folder();
            let settings = format!(
                "[databases]\n{name} = host=127.0.0.1 port={to} dbname={name}\n\n\
                 [pgbouncer]\npool_mode = transaction\nlisten_addr = 127.0.0.1\nunix_socket_dir =\n\
                 auth_type = trust\nauth_file = {}\n%include {}\n",
                folder.join("users").display(),
                folder.join("port").display(),
            );
            write(&folder.join("users"), &format!("\"{ROLE}\" \"\"\n"));
            write(&folder.join("pgbouncer.ini"), &settings);
            server
        })
        .await;
        let port_file = server.folder().join("port");
        let with_port = move |number: u16| {
            // PgBouncer takes its port from its file only.
            write(&port_file, &format!("listen_port = {number}\n"));
            String::new()
        };
        let port = server.start_on_a_port(with_port, accepts).await;
        let url = database.url_at(port.addr());
        Self { _server: server, _port: port, url }
    }

    /// Returns the database's address through PgBouncer.
    pub fn url(&self) -> &str {
        &self.url
    }
}

fn write(path: &Path, text: &str) {
    std::fs::write(path, text).expect("PgBouncer's private folder");
    give_to_server_user(path);
}

fn accepts(port: u16) -> bool {
    TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok()
}
