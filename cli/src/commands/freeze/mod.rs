//! `turnstone freeze`: no new call of a model or a tool, for the fleet or a tenant.

use super::Session;
use crate::output::Format;
use crate::output::table::{Column, column, plain};
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use std::process::ExitCode;

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

const COLUMNS: &[Column] = &[
    column("SCOPE", whose),
    column("SINCE", |row| plain(&row["frozen_at"])),
    column("BY", |row| plain(&row["frozen_by"])),
    column("REASON", |row| plain(&row["reason"])),
];

/// Runs the command.
///
/// # Errors
/// The request fails.
pub async fn run(command: FreezeCommand, session: &Session) -> anyhow::Result<ExitCode> {
    let (client, output) = (session.client()?, &session.output);
    let (changed, done) = match command {
        FreezeCommand::List => {
            let mut answer = client.get(&["freeze"], &[]).await?;
            let freezes = match answer["freezes"].take() {
                Value::Array(freezes) => freezes,
                _ => Vec::new(),
            };
            output.list(&freezes, "tenant", COLUMNS)?;
            return Ok(ExitCode::SUCCESS);
        }
        FreezeCommand::Set(args) => {
            let body = json!({"tenant": args.tenant, "reason": args.reason});
            (client.put(&["freeze"], &body).await?, "is frozen")
        }
        FreezeCommand::Lift(args) => {
            let query: Vec<_> = args.tenant.into_iter().map(|tenant| ("tenant", tenant)).collect();
            (client.delete_some(&["freeze"], &query).await?, "is no longer frozen")
        }
    };
    match output.format {
        Format::Json => output.json(&changed)?,
        Format::Ids => output.line(&plain(&changed["tenant"]))?,
        Format::Table => output.line(&format!("{} {done}", whose(&changed)))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the scope of a freeze in words.
fn whose(freeze: &Value) -> String {
    match &freeze["tenant"] {
        Value::Null => "the whole fleet".to_owned(),
        tenant => format!("tenant {}", plain(tenant)),
    }
}
