//! `turnstone key revoke`.

use super::{RevokeArgs, id_of};
use crate::client::Received;
use crate::commands::Session;
use crate::output::{Format, text};
use turnstone_api::answers::ShownKey;

pub(super) async fn run(args: RevokeArgs, session: &Session) -> anyhow::Result<()> {
    for named in args.keys {
        let id = id_of(&named, session).await?;
        let key: Received<ShownKey> = session.client()?.delete(&["keys", &id]).await?;
        match session.output.format {
            Format::Json => session.output.ndjson(&key)?,
            Format::Ids => session.output.line(&key.id)?,
            Format::Table => {
                session.output.line(&format!("key {} of {} is revoked", key.id, text::line(&key.name)))?;
            }
        }
    }
    Ok(())
}
