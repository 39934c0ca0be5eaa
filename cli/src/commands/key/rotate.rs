//! `turnstone key rotate`.

use super::{RotateArgs, id_of, show_secret};
use crate::commands::Session;
use serde_json::json;

pub(super) async fn run(args: RotateArgs, session: &Session) -> anyhow::Result<()> {
    let id = id_of(&args.key, session).await?;
    let body = json!({"grace_seconds": args.grace.unwrap_or(0)});
    let key = session.client()?.post(&["keys", &id, "rotate"], &body).await?;
    show_secret(&key, session)
}
