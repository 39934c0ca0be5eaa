//! `turnstone freeze`: no new call of a model or a tool, for the fleet or a tenant.

use super::Session;
use crate::client::Received;
use crate::output::Format;
use crate::output::table::{Column, column, plain};
use clap::{Args, Subcommand};
use serde_json::json;
use std::process::ExitCode;
use turnstone_api::answers::{LiftedFreeze, ShownFreeze};

/// `turnstone freeze`.
#[derive(Debug, Subcommand)]
pub enum FreezeCommand {
    /// Freeze the whole fleet or a tenant: within a second, turns call no model and no tool
    #[command(after_help = "\
Examples:
  turnstone freeze set --reason 'a tool sends wrong mails'
  turnstone freeze set --tenant acme")]
    Set(FreezeArgs),
    /// List the freezes that hold
    List,
    /// Lift a freeze: turns that wait continue
    Lift(LiftArgs),
}

/// `turnstone freeze set`.
#[derive(Clone, Debug, Args)]
pub struct FreezeArgs {
    /// The tenant; without it, the whole fleet
    #[arg(long, value_name = "TENANT")]
    pub tenant: Option<String>,
    /// Why, for the list and the audit
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
}

/// `turnstone freeze lift`.
#[derive(Clone, Debug, Args)]
pub struct LiftArgs {
    /// The tenant; without it, the whole fleet
    #[arg(long, value_name = "TENANT")]
    pub tenant: Option<String>,
}

const COLUMNS: &[Column<ShownFreeze>] = &[
    column("SCOPE", |row| whose(row.tenant.as_deref())),
    column("SINCE", |row| plain(&row.frozen_at)),
    column("BY", |row| plain(&row.frozen_by)),
    column("REASON", |row| plain(&row.reason)),
];

/// Runs the command.
///
/// # Errors
/// The request fails.
pub async fn run(command: FreezeCommand, session: &Session) -> anyhow::Result<ExitCode> {
    let (client, output) = (session.client()?, &session.output);
    let (changed, tenant, done) = match command {
        FreezeCommand::List => {
            let freezes: Vec<_> = client.member(&["freeze"], &[], "freezes").await?;
            output.list(&freezes, |freeze| freeze.tenant.as_deref().unwrap_or_default(), COLUMNS)?;
            return Ok(ExitCode::SUCCESS);
        }
        FreezeCommand::Set(args) => {
            let body = json!({"tenant": args.tenant, "reason": args.reason});
            let freeze: Received<ShownFreeze> = client.put(&["freeze"], &body).await?;
            (serde_json::to_value(&freeze)?, freeze.into_value().tenant, "is frozen")
        }
        FreezeCommand::Lift(args) => {
            let query: Vec<_> = args.tenant.into_iter().map(|tenant| ("tenant", tenant)).collect();
            let lifted: Received<LiftedFreeze> = client.delete_some(&["freeze"], &query).await?;
            (serde_json::to_value(&lifted)?, lifted.into_value().tenant, "is no longer frozen")
        }
    };
    match output.format {
        Format::Json => output.json(&changed)?,
        Format::Ids => output.line(&plain(&tenant))?,
        Format::Table => output.line(&format!("{} {done}", whose(tenant.as_deref())))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the scope of a freeze in words.
fn whose(tenant: Option<&str>) -> String {
    tenant.map_or_else(|| "the whole fleet".to_owned(), |tenant| format!("tenant {tenant}"))
}
