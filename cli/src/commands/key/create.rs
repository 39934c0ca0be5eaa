//! `turnstone key create`.

use super::{CreateArgs, show_secret};
use crate::commands::Session;
use serde_json::json;
use turnstone_domain::{Clock as _, SystemClock};

pub(super) async fn run(args: CreateArgs, session: &Session) -> anyhow::Result<()> {
    let expires_at =
        args.expires_in.map(|seconds| SystemClock.now().plus_ms(seconds.saturating_mul(1000)).to_rfc3339());
    let body = json!({"name": args.name, "tenant": args.tenant, "roles": args.roles, "acts_for": args.acts_for,
                      "expires_at": expires_at, "rate_per_minute": args.rate});
    let key = session.client()?.post(&["keys"], &body).await?;
    show_secret(&key, session)
}
