//! `turnstone audit`: the chain of changes and refused requests.

mod export;
mod list;
mod verify;

use super::Session;
use clap::{Args, Subcommand};
use std::path::PathBuf;
use std::process::ExitCode;
use turnstone_api::answers::ChainPart;
use turnstone_domain::audit::AuditHead;

/// `turnstone audit`.
#[derive(Debug, Subcommand)]
pub enum AuditCommand {
    /// List the newest entries
    List(ListArgs),
    /// Check the chain of the server, or of an exported file; exit code 1 when it is broken
    #[command(after_help = "\
Examples:
  turnstone audit verify
  turnstone audit verify --contains 4211:9f86d0…
  turnstone audit verify --file audit.ndjson")]
    Verify(VerifyArgs),
    /// Print all entries in order, one JSON object per line
    #[command(after_help = "Example: turnstone audit export > audit.ndjson")]
    Export(ExportArgs),
}

/// `turnstone audit list`.
#[derive(Clone, Debug, Args)]
pub struct ListArgs {
    /// The most entries, up to 200
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=200))]
    pub limit: u32,
}

/// `turnstone audit verify`.
#[derive(Clone, Debug, Args)]
pub struct VerifyArgs {
    /// A file of `turnstone audit export` instead of the server's chain
    #[arg(long, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// An earlier end of the chain, as `verify` printed it; the chain must still contain it
    #[arg(long, value_name = "SEQ:HASH", value_parser = head)]
    pub contains: Option<AuditHead>,
}

/// `turnstone audit export`.
#[derive(Clone, Debug, Args)]
pub struct ExportArgs {
    /// Only entries after this number
    #[arg(long, value_name = "SEQ", default_value_t = 0, value_parser = clap::value_parser!(i64).range(0..))]
    pub after: i64,
}

/// Runs the command.
///
/// # Errors
/// The error of the command.
pub async fn run(command: AuditCommand, session: &Session) -> anyhow::Result<ExitCode> {
    match command {
        AuditCommand::List(args) => list::run(args, session).await,
        AuditCommand::Verify(args) => verify::run(args, session).await,
        AuditCommand::Export(args) => export::run(args, session).await,
    }
}

/// Reads the entries after a number.
async fn part(session: &Session, after: i64) -> anyhow::Result<ChainPart> {
    Ok(session.client()?.get(&["audit", "chain"], &[("after", after.to_string())]).await?)
}

/// Reads `SEQ:HASH`.
fn head(text: &str) -> Result<AuditHead, String> {
    let wrong = || "must be SEQ:HASH, such as 12:9f86d081…, as `turnstone audit verify` prints it".to_owned();
    let (seq, hash) = text.split_once(':').ok_or_else(wrong)?;
    let is_hash = hash.len() == 64 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
    let seq = seq.parse().ok().filter(|seq| *seq > 0).filter(|_| is_hash).ok_or_else(wrong)?;
    Ok(AuditHead { seq, hash: hash.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_of_the_chain_is_read_strictly() {
        let hash = "ab".repeat(32);
        assert_eq!(head(&format!("7:{hash}")), Ok(AuditHead { seq: 7, hash: hash.clone() }));
        for wrong in ["", "7", "7:ab", &format!("0:{hash}"), &format!("x:{hash}"), &hash] {
            assert!(head(wrong).is_err(), "{wrong}");
        }
    }
}
