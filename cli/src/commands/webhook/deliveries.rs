//! `turnstone webhook deliveries` and `redeliver`.

use super::SUBSCRIPTIONS;
use crate::client::raw_part;
use crate::commands::Session;
use crate::output::table::{Column, column, plain, time};
use crate::output::text;
use clap::Args;
use serde_json::json;
use std::process::ExitCode;
use turnstone_ojs::DeliveryBody;

const COLUMNS: &[Column<DeliveryBody>] = &[
    column("ID", |delivery| plain(&delivery.id)),
    column("EVENT", |delivery| plain(&delivery.event)),
    column("STATE", |delivery| plain(&delivery.state)),
    column("ATTEMPTS", |delivery| plain(&delivery.attempts)),
    column("STATUS", |delivery| plain(&delivery.status)),
    column("NEXT", |delivery| time(&delivery.next_attempt_at)),
    column("ERROR", |delivery| plain(&delivery.error)),
];

/// `turnstone webhook redeliver`.
#[derive(Clone, Debug, Args)]
pub struct RedeliverArgs {
    /// The subscription's id
    pub id: String,
    /// The delivery's id
    pub delivery: String,
}

/// Prints the list.
///
/// # Errors
/// The request fails, or there is no such subscription.
pub async fn run(id: &str, session: &Session) -> anyhow::Result<ExitCode> {
    let path = [SUBSCRIPTIONS.path, &[id, "deliveries"]].concat();
    let (deliveries, _) = session.client()?.slices(&path, &[], "deliveries", usize::MAX).await?;
    session.output.list(&deliveries, |delivery| &delivery.id, COLUMNS)?;
    Ok(ExitCode::SUCCESS)
}

/// Sends one again.
///
/// # Errors
/// The request fails, or there is no such delivery.
pub async fn redeliver(args: &RedeliverArgs, session: &Session) -> anyhow::Result<ExitCode> {
    let path = [SUBSCRIPTIONS.path, &[&args.id, "deliveries", &args.delivery, "redeliver"]].concat();
    let (client, output) = (session.client()?, session.output);
    let delivery = client.post(&path, &json!({})).await.map(|answer| raw_part(answer, "delivery"))?;
    let words = format!("{} is sent again", text::line(&args.delivery));
    output.answer(&delivery, &args.delivery, &words)?;
    Ok(ExitCode::SUCCESS)
}
