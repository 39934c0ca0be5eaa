//! `turnstone credential`: credentials that tools are called with, for users and for static identities.

use super::Session;
use crate::failure::Failure;
use crate::output::table::{Column, column, plain};
use crate::output::{Format, text};
use clap::{ArgGroup, Args, Subcommand};
use serde_json::{Value, json};
use std::process::ExitCode;
use turnstone_telemetry::SecretRef;

/// `turnstone credential`.
#[derive(Debug, Subcommand)]
pub enum CredentialCommand {
    /// List the credentials, without the secrets
    List,
    /// Store a header that is sent with the calls of a tool
    Set(SetArgs),
    /// Delete the credentials of an owner for a tool
    Delete(DeleteArgs),
}

/// `turnstone credential set`.
#[derive(Clone, Debug, Args)]
#[command(
    group = ArgGroup::new("secret or reference").args(["secret", "value_from"]).required(true),
    after_help = "Example: turnstone credential set static:desk create-ticket --header Authorization --prefix 'Bearer ' --secret CRM_KEY"
)]
pub struct SetArgs {
    /// user:ID, member:TENANT:ID or static:NAME
    pub owner: String,
    /// The tool, or '*' for every tool
    pub tool: String,
    /// The header's name
    #[arg(long, value_name = "NAME")]
    pub header: String,
    /// Put before the secret, such as 'Bearer ' with its blank
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub prefix: String,
    /// The name of a secret among `secrets` of the workers' `[tool_policy]`
    #[arg(long, value_name = "NAME")]
    pub secret: Option<String>,
    /// Reference to the secret itself, as env:NAME or file:/path; the server stores it encrypted, or refuses it
    #[arg(long, value_name = "REFERENCE")]
    pub value_from: Option<String>,
}

/// `turnstone credential delete`.
#[derive(Clone, Debug, Args)]
pub struct DeleteArgs {
    /// user:ID, member:TENANT:ID or static:NAME
    pub owner: String,
    /// The tool, or '*'
    pub tool: String,
    /// One header; all of them by default
    #[arg(long, value_name = "NAME")]
    pub header: Option<String>,
}

const COLUMNS: &[Column] = &[
    column("OWNER", |row| plain(&row["owner"])),
    column("TOOL", |row| plain(&row["tool"])),
    column("HEADER", |row| plain(&row["header"])),
    column("FORM", |row| plain(&row["form"])),
    column("SET", |row| plain(&row["updated_at"])),
];

/// Runs the command.
///
/// # Errors
/// The error of the command.
pub async fn run(command: CredentialCommand, session: &Session) -> anyhow::Result<ExitCode> {
    match command {
        CredentialCommand::List => {
            let mut answer = session.client()?.get(&["credentials"], &[]).await?;
            let rows = match answer["credentials"].take() {
                Value::Array(rows) => rows,
                _ => Vec::new(),
            };
            session.output.list(&rows, "owner", COLUMNS)?;
        }
        CredentialCommand::Set(args) => set(args, session).await?,
        CredentialCommand::Delete(args) => {
            let query: Vec<(&str, String)> =
                args.header.into_iter().map(|header| ("header", header)).collect();
            let path = ["credentials", args.owner.as_str(), args.tool.as_str()];
            let answer = session.client()?.delete_some(&path, &query).await?;
            tell(&answer, "is forgotten", session)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

async fn set(args: SetArgs, session: &Session) -> anyhow::Result<()> {
    let mut body = json!({"header": args.header, "prefix": args.prefix});
    match (args.secret, args.value_from) {
        (_, Some(reference)) => {
            let wrong = |problem: String| Failure::usage(format!("--value-from: {problem}"));
            let secret = SecretRef::parse(&reference).and_then(|secret| secret.resolve()).map_err(wrong)?;
            body["value"] = secret.expose().into();
        }
        (name, None) => body["secret"] = name.into(),
    }
    let answer = session.client()?.put(&["credentials", &args.owner, &args.tool], &body).await?;
    tell(&answer, "is kept", session)?;
    for remark in answer["remarks"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        session.output.remark(&text::line(remark).to_string());
    }
    Ok(())
}

fn tell(answer: &Value, what: &str, session: &Session) -> anyhow::Result<()> {
    let output = &session.output;
    let owner = text::line(answer["owner"].as_str().unwrap_or_default()).to_string();
    match output.format {
        Format::Json => output.json(answer)?,
        Format::Ids => output.line(&owner)?,
        Format::Table => {
            let tool = text::line(answer["tool"].as_str().unwrap_or_default()).to_string();
            output.line(&format!("the credential of {owner} for {tool} {what}"))?;
        }
    }
    Ok(())
}
