//! The limits that jobs name by a key, as one claim uses them.

use super::gate::Gate;
use super::line::count;
use crate::engine::limit_name;
use crate::engine::rows::{Inconsistency, JobRow, LimitUse, get};
use crate::engine::session::{Arg, Args, Row, Session};
use crate::engine::statement::{Writes, read, read_by};
use crate::engine::unit::Unit;
use crate::{ClaimRequest, Ring, StoreError, sql};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use turnstone_domain::error::FailureKind;
use turnstone_domain::event::{EventBody, Rescheduled};
use turnstone_domain::state::Trigger;
use turnstone_domain::terms::OnLimit;
use turnstone_domain::{JobError, Timestamp};

/// Limits whose jobs one claim looks at again.
const MOST_OPENED: i64 = 256;

/// A limit, locked until the claim is committed.
struct KeyedLimit {
    gate: Gate,
    booked_at: Timestamp,
    waiting: bool,
    changed: bool,
}

/// The decision about a job that names a limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Passage {
    /// It may start, and counts.
    Free,
    /// Its limit is used up.
    Shut,
    /// Another claim has its limit in its hands.
    Unknown,
}

/// The limits that were locked, and those that could not be.
#[derive(Default)]
pub(super) struct KeyedLimits {
    locked: BTreeMap<String, KeyedLimit>,
    elsewhere: BTreeSet<String>,
}

impl KeyedLimits {
    /// Returns true when a concurrent claim held a limit.
    pub(super) fn busy(&self) -> bool {
        !self.elsewhere.is_empty()
    }

    /// Locks limits and counts what is active under them.
    pub(super) async fn lock(
        &mut self,
        session: &mut Session,
        names: BTreeSet<String>,
    ) -> Result<(), StoreError> {
        let new: Vec<String> = names
            .into_iter()
            .filter(|name| !self.locked.contains_key(name) && !self.elsewhere.contains(name))
            .collect();
        let keys = new.to_vec();
        let found = read_by(session, "lock limits", &sql::LOCK_CLAIMED_RATE_KEYS, keys, decode).await?;
        let counted = found.iter().filter(|(_, key)| key.gate.counts_active());
        let keys = counted.map(|(name, _)| name.clone()).collect();
        self.locked.extend(found);
        self.elsewhere.extend(new.into_iter().filter(|name| !self.locked.contains_key(name)));
        // Counted after the rows are locked: who had them before is seen now.
        let (action, text) = ("count active jobs", &sql::SELECT_ACTIVE_OF_RATE_KEYS);
        for (name, active) in read_by(session, action, text, keys, count).await? {
            if let Some(key) = self.locked.get_mut(&name) {
                key.gate.active = active;
            }
        }
        Ok(())
    }

    /// Lets the claim look again at jobs of a queue that are set aside for limits that allow something now.
    pub(super) async fn bring_forward(
        &mut self,
        session: &mut Session,
        request: &ClaimRequest,
        queue: &str,
        room: usize,
    ) -> Result<(), StoreError> {
        let (kind, tenant, now) = (request.kind.as_str(), request.tenant.as_deref(), request.now);
        let values = [kind.into(), queue.into(), now.0.into(), MOST_OPENED.into()];
        let decode = |row: &Row| get::<String>(row, "name");
        let open =
            read(session, "look for open limits", &sql::SELECT_OPEN_RATE_KEYS, &values, decode).await?;
        self.lock(session, open.iter().cloned().collect()).await?;
        let mut settled = Vec::new();
        for name in open {
            let Some(key) = self.locked.get(&name) else { continue };
            let first = key.gate.room(now).min(i64::try_from(room).unwrap_or(i64::MAX));
            if first > 0 {
                let values: [Arg<'_>; 5] =
                    [kind.into(), queue.into(), name.as_str().into(), first.into(), tenant.into()];
                session
                    .execute("bring jobs forward", &sql::UPDATE_NEXT_LIMITED_JOBS, Args::Values(&values))
                    .await?;
                settled.push(name);
            }
        }
        let keys: Vec<String> = settled.to_vec();
        let (action, text) = ("look for waiting jobs", &sql::SELECT_WAITING_RATE_KEYS);
        let waiting: BTreeSet<String> =
            read_by(session, action, text, keys, decode).await?.into_iter().collect();
        for name in settled {
            if let Some(key) = self.locked.get_mut(&name).filter(|_| !waiting.contains(&name)) {
                (key.waiting, key.changed) = (false, true);
            }
        }
        Ok(())
    }

    /// Decides whether a job that names this limit may start; counts it if so.
    pub(super) fn pass(&mut self, name: &str, now: Timestamp) -> Passage {
        if self.elsewhere.contains(name) {
            return Passage::Unknown;
        }
        // A limit that was forgotten limits nothing.
        let Some(key) = self.locked.get_mut(name) else { return Passage::Free };
        if key.gate.room(now) == 0 {
            return Passage::Shut;
        }
        key.gate.take(now);
        key.changed = true;
        Passage::Free
    }

    /// Does with jobs whose limits are used up what each asked for.
    pub(super) async fn turn_away(
        &mut self,
        session: &mut Session,
        unit: &mut Unit,
        jobs: &[JobRow],
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let seqs = jobs.iter().map(|job| job.seq).collect();
        let decode = |row: &Row| Ok((get::<i64>(row, "seq")?, get::<OnLimit>(row, "on_limit")?));
        let wishes = read_by(session, "read wishes", &sql::SELECT_JOBS_ON_LIMIT, seqs, decode).await?;
        let wishes: HashMap<i64, OnLimit> = wishes.into_iter().collect();
        // A unit of its own: what it writes is written, whatever the claim does.
        let (mut own, mut aside) = (Unit::default(), Vec::new());
        own.take_in(session, jobs.to_vec()).await?;
        for job in jobs {
            let Some(key) = job.limit_key.as_ref().and_then(|name| self.locked.get_mut(name)) else {
                continue;
            };
            let opens = key.gate.opens(now);
            key.changed = true;
            match (wishes.get(&job.seq).copied().unwrap_or_default(), opens) {
                (OnLimit::Drop, _) => drop_job(&mut own, job, now)?,
                (OnLimit::Reschedule, Some(opens)) => {
                    // Each gets a time of its own, so that they do not all come at once to find one place.
                    let at = opens.max(key.booked_at.plus_ms(key.gate.spacing_ms()));
                    key.booked_at = at;
                    reschedule(&mut own, job, at, now)?;
                }
                _ => {
                    key.waiting = true;
                    key.gate.opens_at = opens.or(key.gate.opens_at);
                    aside.push(job.seq);
                }
            }
        }
        let mut writes = Writes::default();
        writes.all("set jobs aside", &sql::UPDATE_JOBS_SET_ASIDE, aside);
        writes.run(session).await?;
        own.flush(session).await?;
        unit.absorb(own);
        Ok(())
    }

    /// Writes the use of limits. Returns true when waiting jobs have to be released once a limit opens.
    pub(super) async fn write(self, session: &mut Session) -> Result<bool, StoreError> {
        let changed: Vec<_> = self.locked.into_iter().filter(|(_, key)| key.changed).collect();
        let opening = changed.iter().any(|(_, key)| key.gate.opens_at.is_some());
        let rows = changed
            .into_iter()
            .map(|(name, KeyedLimit { gate, booked_at, waiting, .. })| LimitUse {
                name,
                window_at: gate.window_at,
                started: gate.started,
                next_at: gate.next_at,
                booked_at,
                waiting,
                opens_at: gate.opens_at,
            })
            .collect();
        let mut writes = Writes::default();
        writes.all("write limits", &sql::UPDATE_CLAIMED_RATE_KEYS, rows);
        writes.run(session).await?;
        Ok(opening)
    }
}

fn decode(row: &Row) -> Result<(String, KeyedLimit), Inconsistency> {
    let key = KeyedLimit {
        gate: Gate::decode(row)?,
        booked_at: get(row, "booked_at")?,
        waiting: get(row, "waiting")?,
        changed: false,
    };
    Ok((get(row, "name")?, key))
}

/// `available → discarded`: the job asked for it.
fn drop_job(unit: &mut Unit, job: &JobRow, now: Timestamp) -> Result<(), StoreError> {
    let (_, key) = limit_name::parted(job.limit_key.as_deref().unwrap_or_default());
    let message = format!("the limit `{key}` was used up, and the job asked to be dropped then (on_limit)");
    let error = JobError::new(FailureKind::RateLimited, message);
    unit.change_job(job.seq)?.step(Trigger::Drop, now)?;
    unit.error(job.seq, &error, now)?;
    unit.note(job.seq, EventBody::JobDiscarded(error.event_data()), now)
}

/// `available → scheduled`: the job asked for it.
fn reschedule(unit: &mut Unit, job: &JobRow, at: Timestamp, now: Timestamp) -> Result<(), StoreError> {
    let row = unit.change_job(job.seq)?;
    row.step(Trigger::Reschedule, now)?;
    row.run_at = at;
    unit.rings.push(Ring::Due);
    let later = Rescheduled { reason: "rate_limit".to_owned(), scheduled_at: at.to_rfc3339() };
    unit.note(job.seq, EventBody::JobRescheduled(later), now)
}
