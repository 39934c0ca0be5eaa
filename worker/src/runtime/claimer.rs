//! The claimer of a worker: claims as many jobs as there are free slots, and passes each to apalis with its slot.
//!
//! A round of the loop waits for a free slot, and while many writes of running turns are under way. It claims jobs for all free
//! slots in one request, and waits for the doorbell when there are none. It takes the slots before it claims, so no claimed
//! job has to wait for one.

use super::backend::Assignment;
use super::leases::LeaseKeeper;
use crate::Deps;
use backon::{BackoffBuilder, ExponentialBuilder};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio_util::sync::CancellationToken;
use turnstone_store::{Claim, ClaimRequest, JobKind, Ring, StoreError};
use turnstone_telemetry::Seldom;

/// The interval at which an idle worker looks for work without a notification.
const POLL: Duration = Duration::from_secs(2);
/// The most jobs of one claim. The rows of all of them are in memory at once.
const MOST: usize = 512;
/// While more jobs wait than there are slots, a claim waits until an eighth of the slots is free. A claim costs the
/// database about as much as ten of its jobs, so a claim for each single slot would be expensive.
const PART: usize = 8;
/// The longest that a claim waits for these slots.
const GATHER: Duration = Duration::from_millis(5);

/// Claims jobs until the worker drains. A failure of the store never ends the loop: it claims again after a growing delay
/// of at most half a second.
pub async fn run(
    deps: Arc<Deps>,
    keeper: Arc<LeaseKeeper>,
    assignments: mpsc::Sender<Assignment>,
    draining: CancellationToken,
) {
    let slots = Arc::new(Semaphore::new(deps.options.slots));
    let backoff = ExponentialBuilder::default()
        .with_min_delay(Duration::from_millis(50))
        .with_max_delay(Duration::from_millis(500))
        .without_max_times()
        .with_jitter();
    let mut delays = backoff.build();
    // True while a job that has to run alone (`Claim::runs_alone`) waits until every slot of this worker is free.
    let mut alone = false;
    // True after a claim that returned as many jobs as it asked for: probably more are waiting.
    let mut backlog = false;
    while !draining.is_cancelled() {
        // Registered before the query, so that a notification in between is not lost.
        let mut notifications = deps.doorbell.listen_for_work();
        let Some(first) = first_slots(&slots, alone.then_some(deps.options.slots), &draining).await else {
            break;
        };
        tokio::select! {
            biased;
            () = draining.cancelled() => break,
            () = deps.writes.are_few() => {}
        }
        let mut free = vec![first];
        if !alone {
            let enough = if backlog { (deps.options.slots / PART).min(MOST) } else { 1 };
            free.extend(more_slots(&slots, enough).await.take(MOST - 1));
        }
        let request = request(&deps, if alone { 1 } else { free.len() });
        let asked = request.limit;
        let claimed = deps.ledger.claim(request).await;
        backlog = claimed.as_ref().is_ok_and(|claims| claims.len() >= asked);
        match claimed {
            Ok(claims) if claims.is_empty() => {
                drop(free);
                alone = false;
                delays = backoff.build();
                wait(&mut notifications, &draining).await;
            }
            Ok(mut claims) => {
                delays = backoff.build();
                alone = make_room(&deps, &mut claims, &mut free, alone).await;
                for (claim, permit) in claims.into_iter().zip(free) {
                    let slot = keeper.keep(claim.lease.clone(), claim.priority, permit);
                    // Apalis has stopped for good: the lease keeper releases what was claimed.
                    if assignments.send(Assignment::new(claim, slot)).await.is_err() {
                        return;
                    }
                }
            }
            Err(error) => {
                drop(free);
                recover(&error, delays.next().unwrap_or(POLL), &draining).await;
            }
        }
    }
}

/// Logs a failed claim, and waits before the next one.
async fn recover(error: &StoreError, delay: Duration, draining: &CancellationToken) {
    static FACT: Seldom = Seldom::new();
    if let Some(left_out) = FACT.due() {
        tracing::warn!(left_out, %error, "jobs cannot be claimed; trying until the store answers");
    }
    tokio::select! {
        () = tokio::time::sleep(delay) => {}
        () = draining.cancelled() => {}
    }
}

fn request(deps: &Deps, limit: usize) -> ClaimRequest {
    ClaimRequest {
        kind: JobKind::Agent,
        queues: deps.options.queues.clone(),
        limit,
        worker_id: deps.options.worker_id.clone(),
        lease_ms: deps.options.lease_ms(),
        tenant: None,
        runtime_tags: None,
        now: deps.clock.now(),
    }
}

/// Waits for a free slot, or with `all` for this number of slots, and takes them; `None` when the worker drains. They stay
/// taken during the claim. Otherwise a turn that had waited for another server without a slot could take one, and none
/// would be left for a claimed job.
async fn first_slots(
    slots: &Arc<Semaphore>,
    all: Option<usize>,
    draining: &CancellationToken,
) -> Option<OwnedSemaphorePermit> {
    let wanted = u32::try_from(all.unwrap_or(1)).unwrap_or(u32::MAX);
    tokio::select! {
        biased;
        () = draining.cancelled() => None,
        permit = Arc::clone(slots).acquire_many_owned(wanted) => permit.ok(),
    }
}

/// Takes all other slots that are free. Before, it waits at most [`GATHER`] until there are `enough`, the first one
/// included.
async fn more_slots(slots: &Arc<Semaphore>, enough: usize) -> impl Iterator<Item = OwnedSemaphorePermit> {
    let missing = u32::try_from(enough.saturating_sub(1)).unwrap_or_default();
    if missing > 0 {
        // These permits are returned at once, and taken one by one below, because each job needs a permit of its own.
        let _ = tokio::time::timeout(GATHER, slots.acquire_many(missing)).await;
    }
    let slots = Arc::clone(slots);
    std::iter::from_fn(move || Arc::clone(&slots).try_acquire_owned().ok())
}

/// Handles claimed jobs that have to run alone, because earlier workers died with them. If the worker is idle and the claim
/// has one such job, that job gets all slots. Otherwise these jobs are released at once. Returns true if the claimer should
/// wait until the worker is idle, to claim one of them then.
async fn make_room(
    deps: &Deps,
    claims: &mut Vec<Claim>,
    free: &mut Vec<OwnedSemaphorePermit>,
    alone: bool,
) -> bool {
    if !claims.iter().any(Claim::runs_alone) {
        return alone;
    }
    let is_idle = free.iter().map(OwnedSemaphorePermit::num_permits).sum::<usize>() >= deps.options.slots;
    if is_idle && claims.len() == 1 {
        let merge = |mut all: OwnedSemaphorePermit, one| {
            all.merge(one);
            all
        };
        *free = free.drain(..).reduce(merge).into_iter().collect();
        return false;
    }
    let leases: Vec<_> = claims.extract_if(.., |claim| claim.runs_alone()).map(|claim| claim.lease).collect();
    if let Err(error) = deps.ledger.release(&leases, deps.clock.now()).await {
        tracing::warn!(%error, "jobs that have to run alone could not be released; they become available when their leases have expired");
    }
    true
}

/// Waits until a notification says that jobs may be available, or until the next poll.
async fn wait(notifications: &mut Receiver<Ring>, draining: &CancellationToken) {
    let notified = async {
        loop {
            match notifications.recv().await {
                Ok(Ring::Available) | Err(RecvError::Lagged(_)) => return,
                Ok(_) => {}
                Err(RecvError::Closed) => std::future::pending().await,
            }
        }
    };
    tokio::select! {
        () = notified => {}
        () = tokio::time::sleep(POLL) => {}
        () = draining.cancelled() => {}
    }
    // One claim answers all notifications that have arrived.
    while !matches!(notifications.try_recv(), Err(TryRecvError::Empty | TryRecvError::Closed)) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The claimer takes slots before the claim and keeps them until each has a job. A turn that takes a slot again cannot
    /// get one of them.
    #[tokio::test]
    async fn slots_of_a_running_claim_are_reserved() {
        let (slots, draining) = (Arc::new(Semaphore::new(3)), CancellationToken::new());
        let taken = Arc::clone(&slots).try_acquire_owned().unwrap();
        let first = first_slots(&slots, None, &draining).await.unwrap();
        let more: Vec<_> = more_slots(&slots, 1).await.collect();
        assert_eq!(more.len(), 1);
        assert!(slots.try_acquire().is_err());
        drop((first, more, taken));
        assert_eq!(first_slots(&slots, Some(3), &draining).await.map(|all| all.num_permits()), Some(3));
        draining.cancel();
        assert!(first_slots(&slots, None, &draining).await.is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn a_claim_of_a_backlog_waits_for_a_part_of_the_slots_and_not_for_long() {
        let slots = Arc::new(Semaphore::new(4));
        let mut running: Vec<_> = (0..4).map(|_| Arc::clone(&slots).try_acquire_owned().unwrap()).collect();
        let returns = async {
            tokio::time::advance(GATHER / 2).await;
            running.truncate(1);
        };
        let (more, ()) = tokio::join!(more_slots(&slots, 4), returns);
        assert_eq!(more.collect::<Vec<_>>().len(), 3);
        let _running: Vec<_> = (0..3).map(|_| Arc::clone(&slots).try_acquire_owned().unwrap()).collect();
        assert_eq!(more_slots(&slots, 4).await.collect::<Vec<_>>().len(), 0);
    }
}
