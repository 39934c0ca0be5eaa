//! `turnstone key`: API keys of principals.

mod create;
mod revoke;
mod rotate;

use super::Session;
use crate::client::Received;
use crate::output::table::{Column, column, plain};
use crate::output::{Format, text};
use clap::{Args, Subcommand};
use std::process::ExitCode;
use turnstone_api::answers::{NewKey, OwnPrincipal, ShownKey};
use turnstone_domain::duration::Span;

/// `turnstone key`.
#[derive(Debug, Subcommand)]
pub enum KeyCommand {
    /// Create a key; its secret is shown once
    Create(CreateArgs),
    /// List the keys, without their secrets
    List,
    /// Give a key a new secret, which is shown once
    Rotate(RotateArgs),
    /// Revoke keys; every process refuses them within a second
    Revoke(RevokeArgs),
    /// Show the principal of the current key
    Whoami,
}

/// `turnstone key create`.
#[derive(Clone, Debug, Args)]
#[command(
    after_help = "Examples:\n  turnstone key create batch --tenant acme --role submitter --acts-for '*'\n  \
                        turnstone key create ann --role approver --expires-in 90d"
)]
pub struct CreateArgs {
    /// The principal, which is also its name as a user and a reviewer
    pub name: String,
    /// viewer, submitter, worker, approver, operator or admin; several with commas or by repetition
    #[arg(long = "role", value_name = "ROLE", required = true, value_delimiter = ',')]
    pub roles: Vec<String>,
    /// The tenant; without it, a key of the whole fleet
    #[arg(long, value_name = "TENANT")]
    pub tenant: Option<String>,
    /// A user or reviewer whose name it may use beside its own; '*' for every name
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub acts_for: Vec<String>,
    /// When it expires: a duration such as 12h or 90d
    #[arg(long, value_name = "DURATION", value_parser = seconds)]
    pub expires_in: Option<i64>,
    /// The most requests per minute
    #[arg(long, value_name = "N")]
    pub rate: Option<i64>,
}

/// `turnstone key rotate`.
#[derive(Clone, Debug, Args)]
pub struct RotateArgs {
    /// The key's id, or its principal's name
    pub key: String,
    /// How long the old secret is still accepted, such as 1h [default: not at all]
    #[arg(long, value_name = "DURATION", value_parser = seconds)]
    pub grace: Option<i64>,
}

/// `turnstone key revoke`.
#[derive(Clone, Debug, Args)]
pub struct RevokeArgs {
    /// The keys' ids, or their principals' names
    #[arg(required = true)]
    pub keys: Vec<String>,
}

/// The longest duration: a hundred years.
const LONGEST_MS: i64 = 3_155_760_000_000;

const COLUMNS: &[Column<ShownKey>] = &[
    column("ID", |row| plain(&row.id)),
    column("NAME", |row| plain(&row.name)),
    column("TENANT", |row| plain(&row.tenant)),
    column("ROLES", |row| row.roles.join(", ")),
    column("ACTS FOR", |row| row.acts_for.join(", ")),
    column("STATE", |row| plain(&row.state)),
    column("EXPIRES", |row| plain(&row.expires_at)),
    column("LAST USED", |row| plain(&row.last_used_at)),
];

/// Runs the command.
///
/// # Errors
/// The error of the command.
pub async fn run(command: KeyCommand, session: &Session) -> anyhow::Result<ExitCode> {
    match command {
        KeyCommand::Create(args) => create::run(args, session).await?,
        KeyCommand::List => session.output.list(&keys(session).await?, |key| &key.id, COLUMNS)?,
        KeyCommand::Rotate(args) => rotate::run(args, session).await?,
        KeyCommand::Revoke(args) => revoke::run(args, session).await?,
        KeyCommand::Whoami => {
            let own: Received<OwnPrincipal> = session.client()?.get(&["principal"], &[]).await?;
            let name = text::line(&own.name);
            match session.output.format {
                Format::Table => {
                    let may = may(own.tenant.as_deref(), &own.roles, &own.acts_for);
                    session.output.line(&format!("{name}: {may}"))?;
                }
                Format::Json => session.output.json(&own)?,
                Format::Ids => session.output.line(&name)?,
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

async fn keys(session: &Session) -> anyhow::Result<Vec<Received<ShownKey>>> {
    Ok(session.client()?.member(&["keys"], &[], "keys").await?)
}

/// Returns the id of a key that is named by its id, or by the name of its principal.
async fn id_of(named: &str, session: &Session) -> anyhow::Result<String> {
    let is_named = |key: &Received<ShownKey>| key.id == named || (key.name == named && key.state == "active");
    let found = keys(session).await?.into_iter().find(is_named);
    Ok(found.map_or_else(|| named.to_owned(), |key| key.into_value().id))
}

/// Prints a key with its new secret.
fn show_secret(new: &Received<NewKey>, session: &Session) -> anyhow::Result<()> {
    let (output, NewKey { key, secret }) = (&session.output, &**new);
    match output.format {
        Format::Json => output.json(new)?,
        Format::Ids => output.line(&text::line(&key.id))?,
        Format::Table => {
            output.line(&text::line(secret))?;
            let may = may(key.tenant.as_deref(), &key.roles, &key.acts_for);
            output.remark(&format!("key {} of {}: {may}", key.id, text::line(&key.name)));
            output.remark("this is the only time that the secret is shown; the server keeps its hash");
        }
    }
    Ok(())
}

/// Returns the permissions of a principal in words.
fn may(tenant: Option<&str>, roles: &[String], acts_for: &[String]) -> String {
    let whose = tenant.map_or("the whole fleet".to_owned(), |tenant| format!("tenant {tenant}"));
    let acts_for = match acts_for.join(", ") {
        names if names.is_empty() => "itself".to_owned(),
        names if names == "*" => "everyone".to_owned(),
        names => format!("itself, {names}"),
    };
    text::line(&format!("{} of {whose}, acts for {acts_for}", roles.join(", ")))
}

/// Reads a duration of whole seconds.
fn seconds(text: &str) -> Result<i64, String> {
    match Span::parse_short(text)?.ms() {
        0 => Err("must be longer than nothing".to_owned()),
        ms if ms % 1_000 != 0 => Err("must be a whole number of seconds".to_owned()),
        ms if ms > LONGEST_MS => Err("must be at most a hundred years".to_owned()),
        ms => Ok(ms / 1_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_a_unit() {
        assert_eq!((seconds("90d"), seconds("15m")), (Ok(7_776_000), Ok(900)));
        assert_eq!((seconds("1w"), seconds("PT1.5H")), (Ok(604_800), Ok(5_400)));
        for wrong in ["", "90", "d", "-1d", "0h", "1y", "1.5s", "40000d"] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn permissions_are_shown_in_words() {
        let roles = ["submitter", "approver"].map(str::to_owned);
        assert_eq!(
            may(Some("acme"), &roles, &["ben".to_owned()]),
            "submitter, approver of tenant acme, acts for itself, ben"
        );
        assert_eq!(
            may(None, &["admin".to_owned()], &["*".to_owned()]),
            "admin of the whole fleet, acts for everyone"
        );
    }
}
