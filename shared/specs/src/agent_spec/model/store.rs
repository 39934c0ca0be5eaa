//! Datastores.

use super::Head;
use super::build::{self, Builder};
use crate::agent_spec::component::Component as Read;
use crate::agent_spec::secret::Secret;
use serde_json::{Map, Value};
use std::sync::Arc;

/// A store of collections.
#[derive(Clone, Debug)]
pub struct Datastore {
    /// Id, name and description.
    pub head: Head,
    /// The collections and the schemas of their entities.
    pub datastore_schema: Map<String, Value>,
    /// Its location.
    pub kind: DatastoreKind,
}

/// The location of a store.
#[derive(Clone, Debug)]
pub enum DatastoreKind {
    /// In memory.
    InMemoryCollectionDatastore,
    /// In an Oracle database.
    OracleDatabaseDatastore(OracleDatabaseConnectionConfig),
    /// In PostgreSQL.
    PostgresDatabaseDatastore(PostgresDatabaseConnectionConfig),
}

/// A connection to an Oracle database.
#[derive(Clone, Debug)]
pub struct OracleDatabaseConnectionConfig {
    /// The user.
    pub user: Secret,
    /// Its password.
    pub password: Secret,
    /// The connection string.
    pub dsn: Secret,
    /// `tcp` or `tcps`.
    pub protocol: String,
    /// The folder of its configuration.
    pub config_dir: Option<String>,
    /// The wallet and its password, when both sides prove themselves.
    pub wallet: Option<(Secret, Secret)>,
}

/// A connection to PostgreSQL.
#[derive(Clone, Debug)]
pub struct PostgresDatabaseConnectionConfig {
    /// The user.
    pub user: Secret,
    /// Its password.
    pub password: Secret,
    /// The address.
    pub url: String,
    /// `disable` to `verify-full`.
    pub sslmode: String,
    /// The client's certificate.
    pub sslcert: Option<String>,
    /// The client's key.
    pub sslkey: Option<Secret>,
    /// The authority that the server's certificate is of.
    pub sslrootcert: Option<String>,
    /// Certificates that were revoked.
    pub sslcrl: Option<String>,
}

impl Builder {
    pub(super) fn datastore(&mut self, read: &Arc<Read>) -> Option<Arc<Datastore>> {
        if let Some(known) = self.datastores.get(&read.id) {
            return Some(known.clone());
        }
        let kind = match read.class.name {
            "OracleDatabaseDatastore" => {
                DatastoreKind::OracleDatabaseDatastore(oracle(read.one("connection_config")?)?)
            }
            "PostgresDatabaseDatastore" => {
                DatastoreKind::PostgresDatabaseDatastore(postgres(read.one("connection_config")?)?)
            }
            _ => DatastoreKind::InMemoryCollectionDatastore,
        };
        let datastore_schema = build::map(&read.value("datastore_schema"));
        let built = Arc::new(Datastore { head: Head::of(read), datastore_schema, kind });
        self.datastores.insert(read.id.clone(), built.clone());
        Some(built)
    }
}

/// Reads a connection to an Oracle database.
pub(super) fn oracle(read: &Read) -> Option<OracleDatabaseConnectionConfig> {
    Some(OracleDatabaseConnectionConfig {
        user: read.secret("user")?.clone(),
        password: read.secret("password")?.clone(),
        dsn: read.secret("dsn")?.clone(),
        protocol: read.text("protocol"),
        config_dir: read.optional_text("config_dir"),
        wallet: read.secret("wallet_location").cloned().zip(read.secret("wallet_password").cloned()),
    })
}

fn postgres(read: &Read) -> Option<PostgresDatabaseConnectionConfig> {
    Some(PostgresDatabaseConnectionConfig {
        user: read.secret("user")?.clone(),
        password: read.secret("password")?.clone(),
        url: read.text("url"),
        sslmode: read.text("sslmode"),
        sslcert: read.optional_text("sslcert"),
        sslkey: read.secret("sslkey").cloned(),
        sslrootcert: read.optional_text("sslrootcert"),
        sslcrl: read.optional_text("sslcrl"),
    })
}
