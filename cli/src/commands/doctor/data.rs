//! `turnstone doctor --data`: reads everything that is stored, and names what cannot be read.

use super::Session;
use crate::commands::dev::DataDir;
use crate::commands::serve::fleet_store::{options, refused};
use crate::config::Config;
use crate::failure::{Exit, Failure};
use crate::output::{Format, Output, text};
use std::io;
use std::process::ExitCode;
use turnstone_store::{DamagedValue, Inspected, PostgresStore, SqliteStore};

/// Reads the configured database, and prints each damaged value as soon as it is found. The exit code is 1 when there are any.
///
/// # Errors
/// The configuration or the database cannot be read, or standard output cannot be written.
pub async fn run(session: &Session) -> anyhow::Result<ExitCode> {
    let config = session.config(Vec::new())?.config;
    let output = session.output;
    let mut printed = Ok(());
    let mut report = |damaged: DamagedValue| {
        if printed.is_ok() {
            printed = print(&output, &damaged);
        }
    };
    let inspected = Box::pin(inspect(&config, &mut report)).await?;
    printed?;
    let Inspected { tables, rows, damaged } = inspected;
    let read = format!("{rows} rows of {tables} tables were read");
    if damaged == 0 {
        output.remark(&format!("{read}; all values are in order"));
        return Ok(ExitCode::SUCCESS);
    }
    output.remark(&format!(
        "{read}; {damaged} values are damaged. Restore these rows from a backup; `turnstone job get ID --raw` prints what is \
         stored of a job"
    ));
    Ok(Exit::Failed.into())
}

async fn inspect(
    config: &Config,
    report: &mut (dyn FnMut(DamagedValue) + Send),
) -> anyhow::Result<Inspected> {
    if config.store.url.is_some() {
        return Ok(PostgresStore::inspect(&options(config)?, report).await.map_err(refused)?);
    }
    let file = DataDir::database_in(&config.server.data);
    if !file.is_file() {
        return Err(Failure::usage(format!("there is no database file {}", file.display()))
            .hint("name the data directory with `server.data`, or the database of a fleet with DATABASE_URL")
            .into());
    }
    let keys = config.encryption.keys()?;
    Ok(SqliteStore::inspect(&file, keys.as_ref(), report).await.map_err(refused)?)
}

fn print(output: &Output, damaged: &DamagedValue) -> io::Result<()> {
    let DamagedValue { table, key, id, column, reason } = damaged;
    match output.format {
        Format::Json => output.ndjson(damaged),
        Format::Ids => output.line(&text::line(id.as_ref().unwrap_or(key))),
        Format::Table => {
            let row = match id.as_ref().filter(|id| *id != key) {
                Some(id) => format!("{key} (id {id})"),
                None => key.clone(),
            };
            output.line(&text::line(&format!("{table}, row {row}, column {column}: {reason}")))
        }
    }
}
