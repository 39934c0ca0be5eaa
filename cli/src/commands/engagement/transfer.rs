//! `turnstone engagement export` and `import`: an engagement as one document that moves between servers.

use crate::client::Received;
use crate::commands::Session;
use crate::failure::Failure;
use crate::output::{Format, text};
use std::fs::OpenOptions;
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use turnstone_api::answers::Imported;

/// Writes a file that only its owner may read, because its content is in the clear.
fn keep(path: &Path, document: &str, force: bool) -> Result<(), Failure> {
    let shown = path.display();
    let mut options = OpenOptions::new();
    options.write(true);
    match force {
        true => options.create(true).truncate(true),
        false => options.create_new(true),
    };
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let written = options.open(path).and_then(|mut file| file.write_all(document.as_bytes()));
    written.map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => {
            Failure::usage(format!("{shown} is there already")).hint("name another file, or add --force")
        }
        _ => Failure::failed(format!("{shown} cannot be written: {error}")),
    })
}

/// Writes the document of an engagement to a file, or to standard output.
///
/// # Errors
/// The server refused, or the file cannot be written.
pub async fn export(
    id: &str,
    (to, force): (Option<PathBuf>, bool),
    session: &Session,
) -> anyhow::Result<ExitCode> {
    let document = session.client()?.get_text(&["engagements", id, "export"]).await?;
    let output = session.output;
    output
        .remark("the document has everything that was said, in the clear, also when the store is encrypted");
    match to {
        None => output.document(document.trim_end())?,
        Some(path) => {
            keep(&path, &document, force)?;
            output.line(&text::line(&format!("{id} is in {}", path.display())))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the text of a file; `-` is standard input.
pub(super) fn read(file: &str) -> Result<String, Failure> {
    let read = if file == "-" {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).map(|_| text)
    } else {
        std::fs::read_to_string(file)
    };
    read.map_err(|error| Failure::usage(format!("{file} cannot be read: {error}")))
}

/// Hands a document to the server.
///
/// # Errors
/// The file cannot be read, or the server refused.
pub async fn import(file: &str, session: &Session) -> anyhow::Result<ExitCode> {
    let document = read(file)?;
    let client = session.client()?;
    let reported: Received<Imported> =
        client.post_text((&["engagements", "import"], &[]), "application/x-ndjson", document).await?;
    let (output, id) = (session.output, &reported.engagement_id);
    match output.format {
        Format::Json => output.json(&reported)?,
        Format::Ids => output.line(&text::line(id))?,
        Format::Table => {
            output.line(&text::line(&format!(
                "{id} is here: {}, {}",
                text::counted(reported.turns, "turn"),
                text::counted(i64::try_from(reported.messages).unwrap_or(i64::MAX), "message")
            )))?;
            let key = reported.signature.key_id.as_deref().unwrap_or_default();
            output.remark(&text::line(&match reported.signature.state.as_str() {
                "valid" => format!("its signature is valid, by key {key}"),
                "unknown_key" => {
                    format!("its signature is by key {key}, which this server does not know")
                }
                _ => "it has no signature".to_owned(),
            }));
        }
    }
    Ok(ExitCode::SUCCESS)
}
