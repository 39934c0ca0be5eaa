//! `turnstone engagement artifacts`: the files that an agent made.

use crate::client::Received;
use crate::commands::Session;
use crate::failure::Failure;
use crate::output::table::{Column, column, plain, time};
use crate::output::text;
use clap::Args;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use turnstone_api::answers::ArtifactRow;
use turnstone_api::saved_name;

const COLUMNS: &[Column<ArtifactRow>] = &[
    column("ID", |one| plain(&one.artifact_id)),
    column("NAME", |one| plain(&one.name)),
    column("TYPE", |one| plain(&one.media_type)),
    column("BYTES", |one| plain(&one.bytes)),
    column("TURN", |one| plain(&one.turn)),
    column("MADE", |one| time(&one.created_at)),
];

/// `turnstone engagement artifacts`.
#[derive(Clone, Debug, Args)]
pub struct ArtifactsArgs {
    /// Its id, or its first characters
    pub id: String,
    /// Save this one
    #[arg(long, value_name = "ARTIFACT")]
    pub save: Option<String>,
    /// The file to save it to [default: a safe form of its own name, in this directory]
    #[arg(long, value_name = "FILE", requires = "save")]
    pub to: Option<PathBuf>,
    /// Overwrite the file if it exists
    #[arg(long, requires = "save")]
    pub force: bool,
}

/// Lists them, or saves one.
///
/// # Errors
/// The server refused, there is no such artifact, or the file cannot be written.
pub async fn run(args: ArtifactsArgs, session: &Session) -> anyhow::Result<ExitCode> {
    let client = session.client()?;
    let found: Vec<Received<ArtifactRow>> =
        client.member(&["engagements", &args.id, "artifacts"], &[], "artifacts").await?;
    let Some(wanted) = &args.save else {
        session.output.list(&found, |one| &one.artifact_id, COLUMNS)?;
        return Ok(ExitCode::SUCCESS);
    };
    let artifact = found.iter().find(|one| one.artifact_id == *wanted).ok_or_else(|| {
        Failure::usage(format!("engagement {} has no artifact {wanted}", args.id))
            .hint(format!("turnstone engagement artifacts {} lists them", args.id))
    })?;
    let to = match args.to {
        Some(to) => to,
        None => {
            let name = saved_name(&artifact.name);
            if name != artifact.name {
                let own = text::quoted(&text::line(&artifact.name));
                session
                    .output
                    .remark(&format!("the agent named it {own}, which is not saved under that name"));
            }
            PathBuf::from(name)
        }
    };
    let content = client.get_bytes(&["artifacts", wanted]).await?;
    save(&to, &content, args.force)?;
    let line = format!("{wanted} is in {}, {} bytes", to.display(), content.len());
    session.output.line(&text::line(&line))?;
    Ok(ExitCode::SUCCESS)
}

fn save(to: &Path, content: &[u8], force: bool) -> Result<(), Failure> {
    let mut options = OpenOptions::new();
    match force {
        true => options.write(true).create(true).truncate(true),
        false => options.write(true).create_new(true),
    };
    let written = options.open(to).and_then(|mut file| file.write_all(content));
    written.map_err(|error| {
        let failure = Failure::failed(format!("{} cannot be written: {error}", to.display()));
        match error.kind() {
            std::io::ErrorKind::AlreadyExists => {
                failure.hint("--force overwrites it, --to names another file")
            }
            _ => failure,
        }
    })
}
