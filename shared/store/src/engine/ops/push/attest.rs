//! Queues that take only jobs which ask for attestation (`attest_policy` of the queue's configuration).

use super::super::super::rows::get;
use super::super::super::session::Session;
use super::super::super::statement::look_by;
use crate::{StoreError, sql};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use turnstone_domain::NewJob;
use turnstone_domain::attest::AttestPolicy;

/// What of a queue's configuration is read here.
#[derive(Deserialize)]
struct Config {
    #[serde(default)]
    attest_policy: Option<AttestPolicy>,
}

/// Why each push is refused, if it is: the queue of one of its jobs demands what that job does not ask for.
pub(super) async fn refusals<S: Session>(
    session: &mut S,
    pushes: &[&[NewJob]],
) -> Result<Vec<Option<StoreError>>, StoreError> {
    let queues: BTreeSet<&str> = pushes.iter().copied().flatten().map(|job| job.queue.as_str()).collect();
    let keys = queues.into_iter().map(|name| (name.to_owned(),)).collect();
    let decode = |row: &S::Row| Ok((get::<String>(row, "name")?, get::<String>(row, "config")?));
    let found = look_by(session, "read what queues demand", &sql::QUEUES_DEMANDING, keys, decode).await?;
    let policies: BTreeMap<String, AttestPolicy> = found
        .into_iter()
        .filter_map(|(name, config)| {
            let config: Config = serde_json::from_str(&config).ok()?;
            Some((name, config.attest_policy?))
        })
        .collect();
    let refusal = |jobs: &&[NewJob]| {
        jobs.iter().find_map(|job| {
            let why = policies.get(&job.queue)?.check(&job.envelope.extra).err()?;
            Some(StoreError::NotAttested { queue: job.queue.clone(), why })
        })
    };
    Ok(pushes.iter().map(refusal).collect())
}
