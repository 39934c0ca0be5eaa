//! `turnstone webhook list`: subscriptions.

use crate::commands::Session;
use crate::output::table::{Column, column, plain, time};
use std::process::ExitCode;
use turnstone_ojs::SubscriptionBody;

const COLUMNS: &[Column<SubscriptionBody>] = &[
    column("ID", |webhook| plain(&webhook.id)),
    column("URL", |webhook| plain(&webhook.url)),
    column("EVENTS", |webhook| webhook.events.join(", ")),
    column("STATE", |webhook| if webhook.active { "active".to_owned() } else { "paused".to_owned() }),
    column("SINCE", |webhook| time(&webhook.created_at)),
];

/// Prints the list.
///
/// # Errors
/// The request fails.
pub async fn run(session: &Session) -> anyhow::Result<ExitCode> {
    let listed = super::SUBSCRIPTIONS;
    let webhooks: Vec<_> = listed.all(&session.client()?).await?;
    session.output.list(&webhooks, |webhook| &webhook.id, COLUMNS)?;
    Ok(ExitCode::SUCCESS)
}
