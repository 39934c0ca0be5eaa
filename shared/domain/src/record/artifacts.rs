//! The files of a record, each with its content.

use crate::artifact::{Artifact, NewArtifact};
use crate::{CallId, Timestamp};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A file that a call made.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(try_from = "Line", into = "Line")]
pub struct RecordedArtifact {
    /// The turn of the call.
    pub turn: i64,
    /// When it was kept.
    pub created_at: Timestamp,
    /// The file.
    pub file: NewArtifact,
}

impl RecordedArtifact {
    /// Returns a stored file with its content.
    #[must_use]
    pub fn of(stored: Artifact, content: impl Into<Arc<[u8]>>) -> Self {
        let Artifact { id, call_id, part, turn, name, media_type, digest, created_at, .. } = stored;
        let content = content.into();
        Self { turn, created_at, file: NewArtifact { id, call_id, part, name, media_type, digest, content } }
    }
}

/// A file as it is written in a document.
#[derive(Serialize, Deserialize)]
struct Line {
    call_id: CallId,
    turn: i64,
    part: i64,
    name: String,
    media_type: String,
    created_at: Timestamp,
    /// In base64.
    content: String,
}

impl From<RecordedArtifact> for Line {
    fn from(RecordedArtifact { turn, created_at, file }: RecordedArtifact) -> Self {
        let NewArtifact { call_id, part, name, media_type, content, .. } = file;
        Self { call_id, turn, part, name, media_type, created_at, content: BASE64_STANDARD.encode(content) }
    }
}

impl TryFrom<Line> for RecordedArtifact {
    type Error = String;

    fn try_from(line: Line) -> Result<Self, String> {
        let Line { call_id, turn, part, name, media_type, created_at, content } = line;
        let content = BASE64_STANDARD.decode(content).map_err(|error| format!("`content`: {error}"))?;
        let part = usize::try_from(part).map_err(|_| "`part` must not be negative".to_owned())?;
        let file = NewArtifact::new(&call_id, part, &name, &media_type, content)?;
        Ok(Self { turn, created_at, file })
    }
}
