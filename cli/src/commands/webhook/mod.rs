//! `turnstone webhook`: subscriptions to events.

mod add;
mod change;
mod deliveries;
mod list;

use super::Session;
use super::chosen::{Chosen, Listed, Reading};
use clap::{Args, Subcommand};
use std::process::ExitCode;

/// The list of subscriptions.
const SUBSCRIPTIONS: Listed = Listed {
    path: &["ojs", "v1", "webhooks", "subscriptions"],
    list: "subscriptions",
    name: "id",
    read: Reading::Whole,
};

/// `turnstone webhook`.
#[derive(Debug, Subcommand)]
pub enum WebhookCommand {
    /// List subscriptions
    #[command(visible_alias = "ls")]
    List,
    /// Subscribe a URL to events; the secret that signs them is printed once
    Add(add::AddArgs),
    /// Send a test event
    Test(Chosen),
    /// Stop sending events, without deleting the subscriptions
    Pause(Chosen),
    /// Send events again
    Resume(Chosen),
    /// Replace the secret; the old one signs beside it for a day
    RotateSecret(IdArgs),
    /// Delete subscriptions
    Delete(Chosen),
    /// List the deliveries of a subscription, with their outcome
    Deliveries(IdArgs),
    /// Send a delivery again
    Redeliver(deliveries::RedeliverArgs),
}

/// One id.
#[derive(Clone, Debug, Args)]
pub struct IdArgs {
    /// The subscription's id
    pub id: String,
}

/// Runs the command.
///
/// # Errors
/// The error of the command.
pub async fn run(command: WebhookCommand, session: &Session) -> anyhow::Result<ExitCode> {
    match command {
        WebhookCommand::List => list::run(session).await,
        WebhookCommand::Add(args) => add::run(&args, session).await,
        WebhookCommand::Test(chosen) => change::test(chosen, session).await,
        WebhookCommand::Pause(chosen) => change::activate(chosen, false, session).await,
        WebhookCommand::Resume(chosen) => change::activate(chosen, true, session).await,
        WebhookCommand::RotateSecret(args) => change::rotate(&args.id, session).await,
        WebhookCommand::Delete(chosen) => change::delete(chosen, session).await,
        WebhookCommand::Deliveries(args) => deliveries::run(&args.id, session).await,
        WebhookCommand::Redeliver(args) => deliveries::redeliver(&args, session).await,
    }
}
