//! Keys that all processes of a fleet share: the first process makes one, the others use it.

use super::super::super::rows;
use super::super::super::session::Session;
use super::super::super::statement::{Writes, read};
use crate::control::ServerKey;
use crate::{StoreError, sql};

pub(in super::super::super) async fn keep(
    session: &mut Session,
    key: &ServerKey,
) -> Result<ServerKey, StoreError> {
    let mut writes = Writes::default();
    writes.insert_missing("keep a key", vec![key.clone()]);
    writes.run(session).await?;
    let kept: Vec<ServerKey> =
        read(session, "read keys", &sql::SELECT_SERVER_KEYS, &[], rows::decode).await?;
    Ok(kept.into_iter().find(|kept| kept.name == key.name).unwrap_or_else(|| key.clone()))
}
