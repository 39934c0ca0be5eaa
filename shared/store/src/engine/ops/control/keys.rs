//! Keys that all processes of a fleet share: whoever comes first makes one, the others take it.

use super::super::super::rows;
use super::super::super::session::{Args, Session};
use super::super::super::statement::read;
use crate::control::ServerKey;
use crate::{StoreError, sql};

pub(in super::super::super) async fn keep(
    session: &mut Session,
    key: &ServerKey,
) -> Result<ServerKey, StoreError> {
    let values = [key.name.as_str().into(), key.body.as_str().into(), key.created_at.0.into()];
    session.execute("keep a key", &sql::INSERT_SERVER_KEY, Args::Values(&values)).await?;
    let kept = read(session, "read keys", &sql::SELECT_SERVER_KEYS, &[], rows::server_key).await?;
    Ok(kept.into_iter().find(|kept| kept.name == key.name).unwrap_or_else(|| key.clone()))
}
