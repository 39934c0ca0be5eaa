//! Keys that all processes of a fleet share: the first process makes one, the others use it.

use crate::control::ServerKey;
use crate::engine::rows;
use crate::engine::session::Session;
use crate::engine::statement::{Writes, read};
use crate::{StoreError, sql};

pub(in crate::engine) async fn keep(session: &mut Session, key: &ServerKey) -> Result<ServerKey, StoreError> {
    let mut writes = Writes::default();
    writes.insert_missing("keep a key", vec![key.clone()]);
    writes.run(session).await?;
    let kept: Vec<ServerKey> =
        read(session, "read keys", &sql::SELECT_SERVER_KEYS, &[], rows::decode).await?;
    Ok(kept.into_iter().find(|kept| kept.name == key.name).unwrap_or_else(|| key.clone()))
}
