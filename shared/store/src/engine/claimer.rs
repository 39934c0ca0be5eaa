//! Claims: on a connection of their own, each in one statement ([`alone`]), or else step by step in the writer.

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

/// How long claims are made step by step after one met a job that cannot be read, which such claims would take each time.
const DAMAGED_MS: i64 = 3_600_000;
/// The same after a rule applied that stays.
const RULED_MS: i64 = 1_000;
/// Claims that may wait for the one before them until callers have to wait to ask.
const INBOX: usize = 64;

/// A claim with the place for its answer.
pub(super) type Asked = (ClaimRequest, oneshot::Sender<Result<ClaimOutcome, StoreError>>);

/// The connection and what it remembers between claims.
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
    /// Claims in one statement; `None` when the claim has to be made step by step.
    pub(super) async fn claim_alone(&self, request: &ClaimRequest) -> Result<Option<ClaimBatch>, StoreError> {
        let Some(claimer) = &self.claimer else { return Ok(None) };
        if request.limit == 0 || request.now.0 < claimer.from.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let pause = |ms: i64| claimer.from.store(request.now.0.saturating_add(ms), Ordering::Relaxed);
        let (reply, answer) = oneshot::channel();
        if claimer.asked.send((request.clone(), reply)).await.is_err() {
            return Ok(None);
        }
        let Ok(answer) = answer.await else { return Ok(None) };
        match answer {
            Ok(ClaimOutcome::Claimed(batch)) => Ok(Some(batch)),
            Ok(ClaimOutcome::Damaged(batch)) => {
                pause(DAMAGED_MS);
                Ok(Some(batch))
            }
            Ok(ClaimOutcome::Ruled(stays)) => {
                if stays {
                    pause(RULED_MS);
                }
                Ok(None)
            }
            // Step by step one job that cannot be read keeps no other from being claimed, and the writer waits for a database
            // that is away.
            Err(error) => {
                tracing::warn!(%error, "jobs cannot be claimed in one statement; they are claimed step by step");
                pause(if matches!(error, StoreError::Unreadable { .. }) { DAMAGED_MS } else { RULED_MS });
                Ok(None)
            }
        }
    }

    /// Claims in one statement, or else step by step.
    pub(super) async fn claim_jobs(&self, request: ClaimRequest) -> Result<Vec<Claim>, StoreError> {
        if let Some(batch) = self.claim_alone(&request).await? {
            return Ok(batch.claims);
        }
        let mut pauses = again().build();
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
    async fn run(mut self, mut inbox: mpsc::Receiver<Asked>) {
        while let Some((request, reply)) = inbox.recv().await {
            if reply.is_closed() {
                continue;
            }
            let token = self.ids.next();
            let answer = self.claim(&request, &token).await;
            if let Err(Ok(_)) = reply.send(answer) {
                // The caller has gone away in between.
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

    /// Looks up what a claim took whose answer does not reach its worker. Without an answer from the database the leases run
    /// out, as those of a worker that was killed.
    async fn give_back(&mut self, token: &str, now: Timestamp) {
        for pause in pauses().build() {
            match self.try_to_give_back(token, now).await {
                Ok(()) => return,
                Err(error) => tracing::debug!(%error, "what a claim took is not known yet"),
            }
            tokio::time::sleep(pause).await;
        }
        tracing::warn!("what a claim took cannot be looked up; leases that it took run out");
    }

    async fn try_to_give_back(&mut self, token: &str, now: Timestamp) -> Result<(), StoreError> {
        // Waits for a transaction that is still being committed.
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

/// The pauses between attempts: together about a quarter of a minute.
fn pauses() -> ExponentialBuilder {
    ExponentialBuilder::default()
        .with_min_delay(Duration::from_millis(20))
        .with_max_delay(Duration::from_secs(1))
        .with_max_times(20)
}

/// The pauses of a claim that found what it wanted in the hands of others: together less than half a second.
pub(super) fn again() -> ExponentialBuilder {
    ExponentialBuilder::default()
        .with_min_delay(Duration::from_millis(2))
        .with_max_delay(Duration::from_millis(50))
        .with_max_times(12)
        .with_jitter()
}
