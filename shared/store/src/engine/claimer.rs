//! Claims. There are two ways:
//!
//! - In one statement ([`alone`]), on a connection of its own. It is fast, and serves when no rule about the jobs needs a second
//!   look. Only PostgreSQL has it.
//! - Step by step, as a write of the writer. It knows all rules, such as limits of queues and rate limits, and it skips jobs that
//!   cannot be read.
//!
//! A claim first tries the one statement. When that finds a reason for the other way, the next claims take the other way at
//! once, for a while.

use super::Engine;
use super::definitions::Definitions;
use super::held::HeldJobs;
use super::ops::claim;
use super::ops::claim::alone::{self, ClaimBatch, ClaimOutcome};
use super::session::{CommitError, Session};
use super::unit::Unit;
use crate::{Claim, ClaimRequest, Doorbell, StoreError};
use backon::{BackoffBuilder, ExponentialBuilder};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use turnstone_domain::{Ids, Timestamp};

/// How long claims are made step by step after one met a job that cannot be read, in milliseconds. The one statement would claim
/// that job again each time.
const DAMAGED_MS: i64 = 3_600_000;
/// The same after a rule applied that stays, such as the limit of a queue.
const RULED_MS: i64 = 1_000;
/// The most claims that wait for the connection in its channel.
const INBOX: usize = 64;

/// A claim, and the channel for its answer.
pub(super) type Asked = (ClaimRequest, oneshot::Sender<Result<ClaimOutcome, StoreError>>);

/// The connection for claims, and what is remembered between them.
struct Claimer {
    session: Session,
    ids: Arc<dyn Ids>,
    doorbell: Doorbell,
    definitions: Definitions,
    held: Arc<HeldJobs>,
}

/// Starts a claimer on the current runtime; it ends when the sender is dropped.
pub(super) fn start(
    session: Session,
    ids: Arc<dyn Ids>,
    doorbell: Doorbell,
    held: Arc<HeldJobs>,
) -> mpsc::Sender<Asked> {
    let (sender, inbox) = mpsc::channel(INBOX);
    let claimer = Claimer { session, ids, doorbell, definitions: Definitions::default(), held };
    tokio::spawn(claimer.run(inbox));
    sender
}

impl Engine {
    /// Claims in one statement; `None` when nothing was claimed and the claim has to be made step by step.
    pub(super) async fn claim_alone(&self, request: &ClaimRequest) -> Result<Option<ClaimBatch>, StoreError> {
        let Some(claimer) = &self.claimer else { return Ok(None) };
        if request.limit == 0 || request.now.0 < claimer.from.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let step_by_step_for =
            |ms: i64| claimer.from.store(request.now.0.saturating_add(ms), Ordering::Relaxed);
        let (reply, answer) = oneshot::channel();
        if claimer.asked.send((request.clone(), reply)).await.is_err() {
            return Ok(None);
        }
        let Ok(answer) = answer.await else { return Ok(None) };
        match answer {
            Ok(ClaimOutcome::Claimed(batch)) => Ok(Some(batch)),
            Ok(ClaimOutcome::Damaged(batch)) => {
                step_by_step_for(DAMAGED_MS);
                Ok(Some(batch))
            }
            Ok(ClaimOutcome::Ruled(stays)) => {
                if stays {
                    step_by_step_for(RULED_MS);
                }
                Ok(None)
            }
            // The writer can do better: it claims the jobs that can be read, and waits for a database that does not answer.
            Err(error) => {
                tracing::warn!(%error, "jobs cannot be claimed in one statement; they are claimed step by step");
                step_by_step_for(if matches!(error, StoreError::Unreadable { .. }) {
                    DAMAGED_MS
                } else {
                    RULED_MS
                });
                Ok(None)
            }
        }
    }

    /// Claims jobs: in one statement, or else step by step. When other claims hold all jobs that it could take, it tries again
    /// for less than half a second.
    pub(super) async fn claim_jobs(&self, request: ClaimRequest) -> Result<Vec<Claim>, StoreError> {
        if let Some(batch) = self.claim_alone(&request).await? {
            return Ok(batch.claims);
        }
        let mut pauses = busy_pauses().build();
        loop {
            let claimed =
                self.write(request.clone(), |tx, request| Box::pin(claim::apply(tx, request))).await?;
            let pause = pauses.next().filter(|_| claimed.busy && claimed.claims.is_empty());
            let Some(pause) = pause else { return Ok(claimed.claims) };
            tokio::time::sleep(pause).await;
        }
    }
}

impl Claimer {
    /// Makes one claim after the other. The tokens of the leases of a claim begin with the same random text, by which its jobs
    /// can be found when its answer is lost.
    async fn run(mut self, mut inbox: mpsc::Receiver<Asked>) {
        while let Some((request, reply)) = inbox.recv().await {
            if reply.is_closed() {
                continue;
            }
            let token = self.ids.next();
            let answer = self.claim(&request, &token).await;
            if let Err(Ok(_)) = reply.send(answer) {
                // The caller has gone away, so no worker would run these jobs.
                self.give_back(&token, request.now).await;
            }
        }
    }

    async fn claim(&mut self, request: &ClaimRequest, token: &str) -> Result<ClaimOutcome, StoreError> {
        self.session.begin().await?;
        let mut unit = Unit::default();
        let session = &mut self.session;
        let claimed = alone::apply(session, &mut unit, request, token, &mut self.definitions).await;
        let claimed = match claimed {
            Ok(outcome) => self.session.commit().await.map(|()| outcome).map_err(|error| match error {
                CommitError::Failed(error) | CommitError::Refused(error) | CommitError::Unknown(error) => {
                    CommitError::Unknown(error)
                }
            }),
            refused => {
                self.session.rollback().await;
                refused
            }
        };
        match claimed {
            Ok(outcome) => {
                self.held.learn(unit.learnt());
                unit.rings.dedup();
                unit.rings.drain(..).for_each(|ring| self.doorbell.ring(ring));
                Ok(outcome)
            }
            Err(CommitError::Failed(error) | CommitError::Refused(error)) => Err(error),
            Err(CommitError::Unknown(error)) => {
                self.give_back(token, request.now).await;
                Err(error)
            }
        }
    }

    /// Releases the jobs of a claim whose answer did not reach its worker. If the database does not answer, their leases expire
    /// like those of a killed worker.
    async fn give_back(&mut self, token: &str, now: Timestamp) {
        for pause in lookup_pauses().build() {
            match self.try_to_give_back(token, now).await {
                Ok(()) => return,
                Err(error) => tracing::debug!(%error, "the jobs of a lost claim cannot be released yet"),
            }
            tokio::time::sleep(pause).await;
        }
        tracing::warn!(
            "the jobs of a lost claim cannot be released; they become available when their leases have expired"
        );
    }

    async fn try_to_give_back(&mut self, token: &str, now: Timestamp) -> Result<(), StoreError> {
        // The database may still be committing the claim; this waits until that has ended.
        self.session.outcome().await?;
        self.session.begin().await?;
        let mut unit = Unit::default();
        if let Err(error) = alone::give_back(&mut self.session, &mut unit, token, now).await {
            self.session.rollback().await;
            return Err(error);
        }
        match self.session.commit().await {
            Ok(()) => {
                self.held.learn(unit.learnt());
                unit.rings.drain(..).for_each(|ring| self.doorbell.ring(ring));
                Ok(())
            }
            Err(CommitError::Failed(error) | CommitError::Refused(error) | CommitError::Unknown(error)) => {
                Err(error)
            }
        }
    }
}

/// The pauses between attempts to release the jobs of a lost claim: together about 15 seconds.
fn lookup_pauses() -> ExponentialBuilder {
    ExponentialBuilder::default()
        .with_min_delay(Duration::from_millis(20))
        .with_max_delay(Duration::from_secs(1))
        .with_max_times(20)
}

/// The pauses of a claim whose jobs other transactions hold at the moment: together less than half a second.
pub(super) fn busy_pauses() -> ExponentialBuilder {
    ExponentialBuilder::default()
        .with_min_delay(Duration::from_millis(2))
        .with_max_delay(Duration::from_millis(50))
        .with_max_times(12)
        .with_jitter()
}
