//! Artifacts: files that agents make for their users (Agent Protocol `ArtifactGenerated`, A2A `Artifact`).
//!
//! The digest of its content identifies a file. A repeated call makes the same artifact again, and no second one.

use crate::{ArtifactId, CallId, EngagementId, JobId, Timestamp, digest};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The most artifacts of one engagement.
pub const MOST: usize = 1000;
/// The longest name, in characters.
const NAME_CHARACTERS: usize = 200;
/// The longest media type, in bytes.
const MEDIA_TYPE_BYTES: usize = 200;
/// The media type of content whose type is unknown.
pub const BYTES: &str = "application/octet-stream";

/// The size limits of one artifact and of all artifacts of an engagement, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ArtifactLimits {
    /// One artifact.
    pub each: u64,
    /// All artifacts of an engagement.
    pub engagement: u64,
}

impl Default for ArtifactLimits {
    fn default() -> Self {
        Self { each: 16 << 20, engagement: 256 << 20 }
    }
}

impl ArtifactLimits {
    /// Checks if one more artifact of `new` bytes may be kept beside `kept` others of `bytes` bytes together.
    ///
    /// # Errors
    /// A sentence for the model and the operator.
    pub fn admit(&self, new: u64, kept: usize, bytes: u64) -> Result<(), String> {
        if new > self.each {
            return Err(format!(
                "it has {new} bytes, and an artifact may have {}: make it smaller or in parts, or raise \
                 artifact_max_bytes of [worker]",
                self.each
            ));
        }
        if bytes.saturating_add(new) > self.engagement {
            return Err(format!(
                "it has {new} bytes beside the {bytes} that this engagement keeps, which may have {}; raise \
                 artifacts_max_bytes of [worker] if that is wanted",
                self.engagement
            ));
        }
        if kept >= MOST {
            return Err(format!("this engagement has {MOST} artifacts already, and none may have more"));
        }
        Ok(())
    }
}

/// A file that a tool call made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewArtifact {
    /// Its id; the same file of the same call gets the same id.
    pub id: ArtifactId,
    /// The call that made it.
    pub call_id: CallId,
    /// Its place among the files of the call, from 0.
    pub part: i64,
    /// The name of the file.
    pub name: String,
    /// Its media type, without redundant parameters.
    pub media_type: String,
    /// Lower-case hex SHA-256 of the content.
    pub digest: String,
    /// The content.
    pub content: Arc<[u8]>,
}

impl NewArtifact {
    /// Makes the artifact of a call.
    ///
    /// # Errors
    /// A sentence, when the name is no file name or the media type is invalid.
    pub fn new(
        call_id: &CallId,
        part: usize,
        name: &str,
        media_type: &str,
        content: impl Into<Arc<[u8]>>,
    ) -> Result<Self, String> {
        let name = name.trim();
        if !is_file_name(name) {
            return Err(format!(
                "the name must have 1 to {NAME_CHARACTERS} characters, without slashes and control characters"
            ));
        }
        let media_type = media_type.trim().to_ascii_lowercase();
        if !is_media_type(&media_type) {
            return Err("the media type must be one as `text/plain` or `application/pdf`".to_owned());
        }
        let content = content.into();
        let digest = digest::of_bytes(&content);
        let made = Self {
            id: ArtifactId(String::new()),
            call_id: call_id.clone(),
            part: i64::try_from(part).unwrap_or(i64::MAX),
            name: name.to_owned(),
            media_type,
            digest,
            content,
        };
        Ok(made.of_call(call_id))
    }

    /// Returns the same file as one of this call: its id depends on the call.
    #[must_use]
    pub fn of_call(self, call_id: &CallId) -> Self {
        let parts =
            [call_id.as_str(), &self.part.to_string(), &self.digest, &self.media_type, self.name.as_str()];
        let id = format!("art_{}", &digest::of_text(&parts.join("\n"))[..32]);
        Self { id: ArtifactId(id), call_id: call_id.clone(), ..self }
    }

    /// Returns the size in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        u64::try_from(self.content.len()).unwrap_or(u64::MAX)
    }

    /// Returns the content if it is text.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        std::str::from_utf8(&self.content).ok()
    }
}

/// A stored artifact, without its content.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Artifact {
    /// Its id.
    pub id: ArtifactId,
    /// The engagement in which it was made.
    pub engagement_id: EngagementId,
    /// The job that made it, as long as that is on record.
    pub job_id: Option<JobId>,
    /// The call that made it.
    pub call_id: CallId,
    /// Its place among the files of the call, from 0.
    pub part: i64,
    /// The turn of the call.
    pub turn: i64,
    /// The name of the file.
    pub name: String,
    /// Its media type.
    pub media_type: String,
    /// Lower-case hex SHA-256 of the content.
    pub digest: String,
    /// The size in bytes.
    pub bytes: i64,
    /// When it was kept.
    pub created_at: Timestamp,
    /// True if the result of its call is withheld from the outside.
    pub withheld: bool,
}

impl Artifact {
    /// Returns the path of its download.
    #[must_use]
    pub fn path(&self) -> String {
        path(&self.id)
    }
}

/// Returns the path of an artifact's download.
#[must_use]
pub fn path(id: &ArtifactId) -> String {
    format!("/artifacts/{id}")
}

/// Returns true if this is a plain file name, without a path to another place.
fn is_file_name(name: &str) -> bool {
    (1..=NAME_CHARACTERS).contains(&name.chars().count())
        && !matches!(name, "." | "..")
        && !name.chars().any(|one| one.is_control() || matches!(one, '/' | '\\'))
}

/// Returns true if this is `type/subtype`, with or without parameters (RFC 9110 §8.3.1).
fn is_media_type(text: &str) -> bool {
    let is_token = |text: &str| {
        !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b))
    };
    let (essence, parameters) = text.split_once(';').unwrap_or((text, ""));
    let is_clean = parameters.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    let parts = essence.trim_end().split_once('/');
    text.len() <= MEDIA_TYPE_BYTES
        && is_clean
        && parts.is_some_and(|(kind, sub)| is_token(kind) && is_token(sub))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str, media_type: &str, content: &str) -> Result<NewArtifact, String> {
        NewArtifact::new(&"call".into(), 0, name, media_type, content.as_bytes())
    }

    #[test]
    fn the_same_file_of_the_same_call_is_the_same_artifact() {
        let first = file("a.txt", "text/plain", "hello").unwrap();
        assert_eq!(first, file(" a.txt ", "Text/Plain", "hello").unwrap());
        for other in [
            file("b.txt", "text/plain", "hello"),
            file("a.txt", "text/csv", "hello"),
            file("a.txt", "text/plain", "hello!"),
            NewArtifact::new(&"call".into(), 1, "a.txt", "text/plain", "hello".as_bytes()),
            NewArtifact::new(&"other".into(), 0, "a.txt", "text/plain", "hello".as_bytes()),
        ] {
            assert_ne!(first.id, other.unwrap().id);
        }
        assert_eq!(first.digest, "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824");
    }

    #[test]
    fn a_name_leads_nowhere_else() {
        for name in ["", " ", ".", "..", "a/b", "..\\a", "a\nb", &"a".repeat(201)] {
            assert!(file(name, "text/plain", "").is_err(), "{name}");
        }
        for name in ["a", "report 2025.pdf", "Übersicht.csv", ".hidden"] {
            assert!(file(name, "text/plain", "").is_ok(), "{name}");
        }
    }

    #[test]
    fn a_media_type_is_one() {
        for good in ["text/plain; charset=utf-8", "application/vnd.ms-excel", "image/svg+xml"] {
            assert!(file("a", good, "").is_ok(), "{good}");
        }
        for bad in ["", "text", "text/", "/plain", "text/pl ain", "text/plain; a\r\nb: c", "tëxt/plain"] {
            assert!(file("a", bad, "").is_err(), "{bad}");
        }
    }

    #[test]
    fn what_is_kept_is_bounded_three_times() {
        let limits = ArtifactLimits { each: 10, engagement: 25 };
        assert_eq!(limits.admit(10, 1, 15), Ok(()));
        assert!(limits.admit(11, 0, 0).unwrap_err().contains("artifact_max_bytes"));
        assert!(limits.admit(10, 2, 16).unwrap_err().contains("artifacts_max_bytes"));
        assert!(limits.admit(0, MOST, 0).unwrap_err().contains("1000"));
    }
}
