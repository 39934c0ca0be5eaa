//! The writing side of the four traits: each call is one request to the writer.

use super::ops::leases;
use super::ops::turns::{TurnEnd, TurnStep};
use super::rows;
use super::sql;
use super::statement::{as_json, decode_all, failed};
use super::writer::{Answer, Request, Work};
use super::{SqliteStore, views};
use crate::{
    CancelOutcome, Claim, ClaimRequest, Decision, DecisionOutcome, Intake, Ledger, LedgerError, NewAgent,
    Pushed, Recall, StoreError, Upkeep,
};
use async_trait::async_trait;
use tokio::sync::oneshot;
use turnstone_domain::budget::Budget;
use turnstone_domain::{JobId, Lease, NewJob, ReviewId, Settlement, Timestamp, TurnWrite};

impl SqliteStore {
    async fn ask<T>(&self, work: impl FnOnce(oneshot::Sender<T>) -> Work) -> Result<T, StoreError> {
        let (reply, answer) = oneshot::channel();
        self.writer.send(work(reply)).await.map_err(|_| StoreError::Closed)?;
        answer.await.map_err(|_| StoreError::Closed)
    }

    async fn request(&self, request: Request) -> Result<Answer, StoreError> {
        self.ask(|reply| Work::Other(request, reply)).await?
    }

    async fn count(&self, request: Request) -> Result<usize, StoreError> {
        match self.request(request).await? {
            Answer::Count(count) => Ok(count),
            _ => Err(StoreError::Closed),
        }
    }

    async fn step(&self, step: TurnStep) -> Result<Budget, LedgerError> {
        self.ask(|reply| Work::Turn(Box::new(step), reply)).await?
    }
}

#[async_trait]
impl Intake for SqliteStore {
    async fn push(&self, jobs: Vec<NewJob>) -> Result<Vec<Pushed>, StoreError> {
        self.ask(|reply| Work::Push(jobs, reply)).await?
    }

    async fn cancel(&self, job: &JobId, at: Timestamp) -> Result<CancelOutcome, StoreError> {
        match self.request(Request::Cancel(job.clone(), at)).await? {
            Answer::Cancel(outcome) => Ok(outcome),
            _ => Err(StoreError::Closed),
        }
    }

    async fn register_agent(&self, agent: NewAgent) -> Result<bool, StoreError> {
        match self.request(Request::Register(Box::new(agent))).await? {
            Answer::Changed(changed) => Ok(changed),
            _ => Err(StoreError::Closed),
        }
    }

    async fn decide_review(
        &self,
        review: &ReviewId,
        decision: Decision,
    ) -> Result<DecisionOutcome, StoreError> {
        match self.request(Request::Decide(review.clone(), decision)).await? {
            Answer::Decision(outcome) => Ok(outcome),
            _ => Err(StoreError::Closed),
        }
    }
}

#[async_trait]
impl Ledger for SqliteStore {
    async fn claim(&self, mut request: ClaimRequest) -> Result<Vec<Claim>, StoreError> {
        // An idle poll is one read: the writer is asked only when a queue has something.
        let ready = self.ready_queues(request.kind).await?;
        request.queues = wanted(&request.queues, ready);
        if request.queues.is_empty() || request.limit == 0 {
            return Ok(Vec::new());
        }
        match self.request(Request::Claim(request)).await? {
            Answer::Claims(claims) => Ok(claims),
            _ => Err(StoreError::Closed),
        }
    }

    async fn checkpoint(
        &self,
        lease: &Lease,
        write: TurnWrite,
        now: Timestamp,
        lease_ms: i64,
    ) -> Result<Budget, LedgerError> {
        let end = TurnEnd::Extend(now.plus_ms(lease_ms));
        self.step(TurnStep { lease: lease.clone(), write, now, end }).await
    }

    async fn settle(
        &self,
        lease: &Lease,
        write: TurnWrite,
        settlement: Settlement,
        now: Timestamp,
    ) -> Result<(), LedgerError> {
        let end = TurnEnd::Settle(settlement);
        self.step(TurnStep { lease: lease.clone(), write, now, end }).await.map(|_| ())
    }

    async fn extend(
        &self,
        leases: &[Lease],
        now: Timestamp,
        lease_ms: i64,
    ) -> Result<Vec<String>, StoreError> {
        let request = Request::Extend { leases: leases.to_vec(), until: now.plus_ms(lease_ms) };
        match self.request(request).await? {
            Answer::Lost(lost) => Ok(lost),
            _ => Err(StoreError::Closed),
        }
    }

    async fn lost(&self, held: &[Lease]) -> Result<Vec<String>, StoreError> {
        let keys = as_json(&leases::keys(held))?;
        let rows = sqlx::query(sql::LEASES_HELD).bind(keys).fetch_all(&self.readers).await;
        let held_tokens = decode_all(&rows.map_err(failed("check leases"))?, |row| {
            rows::get::<String>(row, "lease_token")
        })?;
        Ok(leases::lost(held, held_tokens))
    }

    async fn release(&self, leases: &[Lease], now: Timestamp) -> Result<(), StoreError> {
        self.request(Request::Release { leases: leases.to_vec(), now }).await.map(|_| ())
    }

    async fn recall(
        &self,
        job: &JobId,
        turn: i64,
        window: u32,
        whole_journal: bool,
    ) -> Result<Recall, StoreError> {
        views::recall(&self.readers, job, turn, window, whole_journal).await
    }
}

#[async_trait]
impl Upkeep for SqliteStore {
    async fn next_due(&self) -> Result<Option<Timestamp>, StoreError> {
        let due: Option<i64> = sqlx::query_scalar(sql::NEXT_DUE)
            .fetch_one(&self.readers)
            .await
            .map_err(failed("look for what is due"))?;
        Ok(due.map(Timestamp))
    }

    async fn promote_due(&self, now: Timestamp, limit: usize) -> Result<usize, StoreError> {
        self.count(Request::PromoteDue { now, limit }).await
    }

    async fn reap_expired(&self, now: Timestamp, limit: usize) -> Result<usize, StoreError> {
        self.count(Request::Reap { until: now, now, limit }).await
    }

    async fn expire_jobs(&self, now: Timestamp, limit: usize) -> Result<usize, StoreError> {
        self.count(Request::ExpireJobs { now, limit }).await
    }

    async fn expire_reviews(&self, now: Timestamp, limit: usize) -> Result<usize, StoreError> {
        self.count(Request::ExpireReviews { now, limit }).await
    }

    async fn release_all(&self, now: Timestamp) -> Result<usize, StoreError> {
        self.count(Request::Reap { until: Timestamp(i64::MAX), now, limit: usize::MAX }).await
    }
}

/// The queues to claim from: those asked for, in their order, that have a job. `*` stands for every queue.
fn wanted(asked: &[String], ready: Vec<String>) -> Vec<String> {
    if asked.iter().any(|queue| queue == "*") {
        return ready;
    }
    asked.iter().filter(|queue| ready.contains(queue)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::wanted;

    #[test]
    fn queues_keep_the_order_in_which_they_were_asked_for() {
        let list = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>();
        assert_eq!(wanted(&list(&["b", "a", "c"]), list(&["a", "b"])), list(&["b", "a"]));
        assert_eq!(wanted(&list(&["*"]), list(&["a", "b"])), list(&["a", "b"]));
        assert!(wanted(&list(&["x"]), list(&["a"])).is_empty());
    }
}
