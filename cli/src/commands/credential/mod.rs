//! `turnstone credential`: credentials that tools are called with, for users and for static identities.

use super::Session;
use crate::client::Received;
use crate::failure::Failure;
use crate::output::table::{Column, column, plain};
use crate::output::text;
use clap::{ArgGroup, Args, Subcommand};
use serde::Serialize;
use serde_json::json;
use std::process::ExitCode;
use turnstone_api::answers::{ForgottenCredentials, KeptCredential, ShownCredential};
use turnstone_telemetry::SecretRef;

/// `turnstone credential`.
#[derive(Debug, Subcommand)]
pub enum CredentialCommand {
    /// List the credentials, without the secrets
    #[command(visible_alias = "ls")]
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

const COLUMNS: &[Column<ShownCredential>] = &[
    column("OWNER", |row| plain(&row.owner)),
    column("TOOL", |row| plain(&row.tool)),
    column("HEADER", |row| plain(&row.header)),
    column("FORM", |row| plain(&row.form)),
    column("SET", |row| plain(&row.updated_at)),
];

/// Runs the command.
///
/// # Errors
/// The error of the command.
pub async fn run(command: CredentialCommand, session: &Session) -> anyhow::Result<ExitCode> {
    match command {
        CredentialCommand::List => {
            let credentials: Vec<_> = session.client()?.member(&["credentials"], &[], "credentials").await?;
            session.output.list(&credentials, |row| &row.owner, COLUMNS)?;
        }
        CredentialCommand::Set(args) => set(args, session).await?,
        CredentialCommand::Delete(args) => {
            let query: Vec<(&str, String)> =
                args.header.into_iter().map(|header| ("header", header)).collect();
            let path = ["credentials", args.owner.as_str(), args.tool.as_str()];
            let gone: Received<ForgottenCredentials> = session.client()?.delete_some(&path, &query).await?;
            tell(&gone, (&gone.owner, &gone.tool), "is forgotten", session)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

async fn set(args: SetArgs, session: &Session) -> anyhow::Result<()> {
    let wrong = |problem: String| Failure::usage(format!("--value-from: {problem}"));
    let value = args.value_from.map(|reference| SecretRef::parse(&reference)?.resolve()).transpose();
    let value = value.map_err(wrong)?;
    let body = json!({"header": args.header, "prefix": args.prefix, "secret": args.secret,
                      "value": value.as_ref().map(|secret| secret.expose())});
    let answer: Received<KeptCredential> =
        session.client()?.put(&["credentials", &args.owner, &args.tool], &body).await?;
    tell(&answer, (&answer.kept.owner, &answer.kept.tool), "is kept", session)?;
    answer.remarks.iter().for_each(|remark| session.output.remark(&text::line(remark)));
    Ok(())
}

fn tell(
    answer: &impl Serialize,
    (owner, tool): (&str, &str),
    what: &str,
    session: &Session,
) -> anyhow::Result<()> {
    let words = format!("the credential of {} for {} {what}", text::line(owner), text::line(tool));
    Ok(session.output.answer(answer, owner, &words)?)
}
