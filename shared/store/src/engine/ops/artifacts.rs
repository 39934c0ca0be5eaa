//! Artifacts: written with the outcome of the call that made them. What is in them is kept once per tenant and counted.

use super::super::rows::{self, ArtifactContent, ArtifactRow};
use super::super::session::{Row, Session};
use super::super::statement::{Writes, read_by};
use super::super::unit::Unit;
use super::turns::TurnStep;
use crate::{StoreError, sql};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use std::collections::{BTreeMap, BTreeSet};
use std::mem::take;
use std::sync::Arc;
use turnstone_domain::Timestamp;
use turnstone_domain::artifact::NewArtifact;

/// A tenant, and the digest of a content.
type ContentKey = (String, String);

/// The artifacts to write, and those that exist.
#[derive(Default)]
pub(in super::super) struct Artifacts {
    known: BTreeSet<String>,
    rows: Vec<ArtifactRow>,
    contents: BTreeMap<ContentKey, Content>,
}

/// The content of new artifacts.
struct Content {
    /// How many of them have it.
    uses: i64,
    bytes: Arc<[u8]>,
}

/// Reads which of the steps' artifacts are kept already: a call that was made again may have made the same.
pub(super) async fn take_in(
    session: &mut Session,
    unit: &mut Unit,
    steps: &[&TurnStep],
) -> Result<(), StoreError> {
    let artifacts = steps.iter().flat_map(|step| &step.write.artifacts);
    let keys = artifacts.map(|(_, artifact)| artifact.id.0.clone()).collect();
    let id = |row: &Row| rows::get::<String>(row, "id");
    let known = read_by(session, "look for artifacts", &sql::SELECT_KNOWN_ARTIFACTS, keys, id).await?;
    unit.artifacts.known.extend(known);
    Ok(())
}

/// Notes the artifacts of a step.
pub(super) fn put(unit: &mut Unit, seq: i64, artifacts: &[(i64, NewArtifact)], at: Timestamp) {
    if artifacts.is_empty() {
        return;
    }
    let tenant = unit.job(seq).and_then(|job| job.tenant.clone()).unwrap_or_default();
    let Some(engagement_seq) = unit.engagement_of(seq).map(|row| row.seq) else { return };
    for (turn, new) in artifacts {
        let noted = &mut unit.artifacts;
        if !noted.known.insert(new.id.0.clone()) {
            continue;
        }
        let key = (tenant.clone(), new.digest.clone());
        let fresh = || Content { uses: 0, bytes: Arc::clone(&new.content) };
        noted.contents.entry(key).or_insert_with(fresh).uses += 1;
        noted.rows.push(ArtifactRow {
            id: new.id.0.clone(),
            engagement_seq,
            job_seq: seq,
            call_id: new.call_id.clone(),
            turn: *turn,
            part: new.part,
            tenant: tenant.clone(),
            digest: new.digest.clone(),
            name: new.name.clone(),
            media_type: new.media_type.clone(),
            created_at: at,
        });
    }
}

impl Artifacts {
    /// Hands over what is to be written.
    pub(in super::super) fn flush(&mut self, writes: &mut Writes) {
        let content = |((tenant, digest), Content { uses, bytes }): (ContentKey, Content)| {
            let length = i64::try_from(bytes.len()).unwrap_or(i64::MAX);
            ArtifactContent { tenant, digest, bytes: length, uses, content: BASE64_STANDARD.encode(bytes) }
        };
        let contents = take(&mut self.contents).into_iter().map(content).collect();
        writes.all("write what is in artifacts", &sql::INSERT_ARTIFACT_CONTENTS, contents);
        writes.insert("write artifacts", take(&mut self.rows));
    }
}
