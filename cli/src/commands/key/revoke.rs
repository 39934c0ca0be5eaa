//! `turnstone key revoke`.

use super::{RevokeArgs, id_of, name};
use crate::commands::Session;
use crate::output::Format;
use crate::output::table::plain;

pub(super) async fn run(args: RevokeArgs, session: &Session) -> anyhow::Result<()> {
    for named in args.keys {
        let id = id_of(&named, session).await?;
        let key = session.client()?.delete(&["keys", &id]).await?;
        match session.output.format {
            Format::Json => session.output.ndjson(&key)?,
            Format::Ids => session.output.line(&plain(&key["id"]))?,
            Format::Table => {
                session.output.line(&format!("key {} of {} is revoked", plain(&key["id"]), name(&key)))?;
            }
        }
    }
    Ok(())
}
