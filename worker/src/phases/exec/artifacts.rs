//! Files of calls. Their size is bounded, and the output guardrail checks them like the agent's words. They
//! are stored in the write that publishes the outcome, so both become durable together.

use super::tool_outcome::{Ending, Over};
use crate::policy::{self, Act, Ruling};
use crate::state::journal::Call;
use crate::state::{Outbox, Stop, TurnHistory};
use turnstone_domain::CallId;
use turnstone_domain::artifact::{Artifact, NewArtifact};
use turnstone_domain::error::FailureKind;
use turnstone_domain::event::{EventBody, File};
use turnstone_domain::tool_call::ToolOutcome;

/// Returns the files of a call that may be kept. If one is refused, none is kept, and the outcome is a
/// failure.
///
/// # Errors
/// [`Stop::Store`], and [`Stop::Fail`] when a file does not pass an output guardrail.
pub async fn admit(
    past: &TurnHistory,
    outbox: &mut Outbox,
    call: &Call,
    outcome: &mut ToolOutcome,
    files: Vec<NewArtifact>,
) -> Result<Vec<NewArtifact>, Stop> {
    if files.is_empty() || !matches!(outcome, ToolOutcome::Success { .. }) {
        return Ok(Vec::new());
    }
    let kept = outbox.claimed.deps.ledger.reads().artifacts_of(&outbox.claimed.engagement.id).await?;
    let ruling = match bounded(outbox, &kept, &files) {
        Ok(()) => policy::may(past, outbox, Act::Files(call, &files)).await?,
        Err(refusal) => Ruling::Deny(refusal),
    };
    if let Ruling::Deny(refusal) = ruling {
        *outcome = refusal;
        return Ok(Vec::new());
    }
    Ok(files)
}

fn bounded(outbox: &Outbox, kept: &[Artifact], files: &[NewArtifact]) -> Result<(), ToolOutcome> {
    let limits = outbox.claimed.deps.options.artifacts;
    let waiting = &outbox.pending.artifacts;
    let count = kept.len() + waiting.len();
    let mut bytes: u64 = kept.iter().map(|artifact| artifact.bytes.unsigned_abs()).sum();
    bytes += waiting.iter().map(|(_, file)| file.bytes()).sum::<u64>();
    let new = files.iter().filter(|file| !kept.iter().any(|artifact| artifact.id == file.id));
    for (count, file) in (count..).zip(new) {
        limits.admit(file.bytes(), count, bytes).map_err(|why| {
            let text = format!("the file `{}` is not kept: {why}", file.name);
            ToolOutcome::failed(FailureKind::Tool, text).again_is_useless()
        })?;
        bytes += file.bytes();
    }
    Ok(())
}

/// Keeps the files of a call that is over, or drops them if its output is denied. Files of a withheld output
/// are published once it is released.
pub fn keep(outbox: &mut Outbox, call: &Call, over: &Over, files: Vec<NewArtifact>) {
    let Ending::Made { denied, withheld, .. } = &over.ending else { return };
    if denied.is_none() && matches!(over.result.outcome, ToolOutcome::Success { .. }) {
        put(outbox, call, files, !withheld);
    }
}

/// Keeps the files of a call; `publishes` adds an event for each.
pub fn put(outbox: &mut Outbox, call: &Call, files: Vec<NewArtifact>, publishes: bool) {
    for file in files {
        if publishes {
            outbox.event(&EventBody::ArtifactGenerated(File {
                artifact_id: file.id.to_string(),
                call_id: call.asked.call_id.clone(),
                file: Some(file.name.clone()),
                media_type: Some(file.media_type.clone()),
                sha256: Some(file.digest.clone()),
                bytes: i64::try_from(file.bytes()).unwrap_or(i64::MAX),
            }));
        }
        let at = outbox.position.turn;
        outbox.pending.artifacts.push((at, file));
    }
}

/// Publishes the files of calls whose output was approved.
///
/// # Errors
/// [`Stop::Store`].
pub async fn reveal(outbox: &mut Outbox, calls: &[CallId]) -> Result<(), Stop> {
    if calls.is_empty() {
        return Ok(());
    }
    let kept = outbox.claimed.deps.ledger.reads().artifacts_of(&outbox.claimed.engagement.id).await?;
    for artifact in kept.iter().filter(|artifact| calls.contains(&artifact.call_id)) {
        outbox.event(&EventBody::ArtifactGenerated(File {
            artifact_id: artifact.id.to_string(),
            call_id: artifact.call_id.clone(),
            file: Some(artifact.name.clone()),
            media_type: Some(artifact.media_type.clone()),
            sha256: Some(artifact.digest.clone()),
            bytes: artifact.bytes,
        }));
    }
    Ok(())
}
