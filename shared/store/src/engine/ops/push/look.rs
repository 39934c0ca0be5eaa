//! The one look before jobs are enqueued: numbers for them, ids that are taken, and queues with rules of their own.

use crate::engine::limited::LimitedQueues;
use crate::engine::rows::{PushedJob, get};
use crate::engine::session::{Row, Session, limit};
use crate::engine::statement::look_by;
use crate::{StoreError, sql};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use turnstone_domain::NewJob;
use turnstone_domain::attest::AttestPolicy;
use turnstone_domain::ids::chosen;

/// The part of a queue's configuration that is read here.
#[derive(Deserialize)]
struct Config {
    #[serde(default)]
    attest_policy: Option<AttestPolicy>,
}

/// The result of a look. Nothing is decided upon it for good: ids are unique, and bounds are locked and counted.
#[derive(Default)]
pub(in crate::engine) struct Look {
    /// New numbers, for jobs and whatever else takes one.
    pub numbers: Vec<i64>,
    /// Ids that jobs have.
    pub taken: HashSet<String>,
    /// Queues that the look found to have a rule.
    ruled: BTreeSet<String>,
    /// Queues with a bound.
    pub(super) bounded: BTreeSet<String>,
    /// Queues that take only jobs which ask for attestation.
    policies: BTreeMap<String, AttestPolicy>,
    /// True when nothing was read: the numbers are [places](crate::engine::columns::Columns::placed), and the statement that
    /// writes the jobs takes the numbers.
    pub(super) placed: bool,
}

impl Look {
    /// Returns the look that reads nothing, if the statement that writes these jobs can check whatever matters to them. An id
    /// that is taken and a rule of a queue make that statement fail.
    pub(super) fn spared(session: &Session, jobs: &[&NewJob], limited: &LimitedQueues) -> Option<Self> {
        let is_plain = |job: &&NewJob| {
            let terms = &job.terms;
            let asks = terms.unique.is_some() || terms.rate_limit.is_some() || terms.tenant.is_some();
            let joins = terms.works_for.is_some() || terms.continues.is_some();
            !asks && !joins && !limited.is_bounded(&job.queue)
        };
        let spared = session.numbers_rows() && jobs.iter().all(is_plain);
        spared.then(|| Self { numbers: (1..=limit(jobs.len())).collect(), placed: true, ..Self::default() })
    }

    /// Remembers which queues of the jobs have rules.
    pub(super) fn teach(&self, jobs: &[&NewJob], limited: &LimitedQueues) {
        for queue in jobs.iter().map(|job| &job.queue) {
            limited.learn_of_push(queue, self.ruled.contains(queue));
        }
    }

    /// Looks for these jobs; `others` more numbers are taken.
    pub(in crate::engine) async fn take(
        session: &mut Session,
        jobs: &[&NewJob],
        others: usize,
    ) -> Result<Self, StoreError> {
        let key = |job: &&NewJob| PushedJob { id: job.id.clone(), queue: job.queue.clone() };
        let keys: Vec<_> = jobs.iter().map(key).collect();
        let decode = |row: &Row| {
            let queue = get::<Option<String>>(row, "queue")?;
            let rules = match queue {
                Some(name) => {
                    Some((name, get::<bool>(row, "bounded")?, get::<Option<String>>(row, "config")?))
                }
                None => None,
            };
            let id = get::<Option<String>>(row, "id")?;
            // The id of a job of a tenant is taken for what clients of the tenant choose, too.
            let tenant = get::<Option<String>>(row, "tenant")?;
            let taken = id.map(|id| [chosen(&id, tenant.as_deref()), id]);
            Ok((get::<Option<i64>>(row, "seq")?, taken, rules))
        };
        let (action, text) = ("look before a push", &sql::SELECT_BEFORE_PUSH);
        let mut look = Self::default();
        for (number, taken, rules) in
            look_by(session, action, text, keys, &[limit(others).into()], decode).await?
        {
            look.numbers.extend(number);
            look.taken.extend(taken.into_iter().flatten());
            let Some((queue, bounded, config)) = rules else { continue };
            look.ruled.insert(queue.clone());
            let config = config.and_then(|text| serde_json::from_str::<Config>(&text).ok());
            if let Some(policy) = config.and_then(|config| config.attest_policy) {
                look.policies.insert(queue.clone(), policy);
            }
            look.bounded.extend(bounded.then_some(queue));
        }
        Ok(look)
    }

    /// Why a push is refused, if the queue of one of its jobs demands what that job does not ask for.
    pub(super) fn refusal(&self, jobs: &[NewJob]) -> Option<StoreError> {
        jobs.iter().find_map(|job| {
            let why = self.policies.get(&job.queue)?.check(&job.envelope.extra).err()?;
            Some(StoreError::NotAttested { queue: job.queue.clone(), why })
        })
    }
}
