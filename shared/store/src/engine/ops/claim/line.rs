//! The queues of a claim in the order in which it goes through them, with their limits and pools.

use super::gate::Gate;
use super::shares::Shares;
use super::{Ask, ReadyQueue};
use crate::engine::rows::{Fields, Inconsistency, PoolPass, QueueUse, get};
use crate::engine::session::{Row, Session};
use crate::engine::statement::{Writes, read_by};
use crate::{PoolStrategy, StoreError, sql};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use turnstone_domain::Timestamp;

/// One stop on the way.
pub(super) enum Stop {
    Queue(String),
    Pool(Shares),
}

/// A queue that has limits or is in a pool, locked until the claim is committed.
pub(super) struct Locked {
    name: String,
    pool: Option<String>,
    weight: i64,
    pass: i64,
    claims: i64,
    gate: Gate,
}

impl Locked {
    fn decode(row: &impl Fields) -> Result<Self, Inconsistency> {
        Ok(Self {
            name: get(row, "name")?,
            pool: get(row, "pool")?,
            weight: get(row, "weight")?,
            pass: get(row, "pass")?,
            claims: get(row, "claims")?,
            gate: Gate::decode(row)?,
        })
    }
}

/// Where a claim goes.
#[derive(Default)]
pub(super) struct Line {
    pub stops: Vec<Stop>,
    locked: HashMap<String, Locked>,
    used: BTreeSet<String>,
    /// True when a concurrent claim held something that this one had to leave out.
    pub busy: bool,
}

impl Line {
    /// Locks the rows that the claim needs; rows that a concurrent claim holds are left out.
    pub(super) async fn form(session: &mut Session, ask: &Ask) -> Result<Self, StoreError> {
        let by_name: HashMap<&str, &ReadyQueue> =
            ask.ready.iter().map(|queue| (queue.name.as_str(), queue)).collect();
        let named: Vec<&ReadyQueue> =
            ask.request.queues.iter().filter_map(|name| by_name.get(name.as_str()).copied()).collect();
        let mut line = Self::default();
        if named.iter().all(|queue| queue.pool.is_none() && !queue.limited) {
            line.stops = named.into_iter().map(|queue| Stop::Queue(queue.name.clone())).collect();
            return Ok(line);
        }
        let pools = line.lock_pools(session, &named).await?;
        let wanted: BTreeSet<&str> = named
            .iter()
            .filter(|queue| queue.limited || queue.pool.is_some())
            .map(|queue| queue.name.as_str())
            .chain(ask.ready.iter().filter(|q| in_pools(q, &pools)).map(|q| q.name.as_str()))
            .collect();
        line.lock_queues(session, &wanted).await?;
        line.order(&named, &ask.ready, pools);
        Ok(line)
    }

    async fn lock_pools(
        &mut self,
        session: &mut Session,
        named: &[&ReadyQueue],
    ) -> Result<BTreeMap<String, Shares>, StoreError> {
        let names: BTreeSet<&String> = named.iter().filter_map(|queue| queue.pool.as_ref()).collect();
        let keys = names.iter().map(|name| (*name).clone()).collect();
        let decode = |row: &Row| {
            let name: String = get(row, "name")?;
            let strategy = get::<PoolStrategy>(row, "strategy")?;
            Ok((name.clone(), Shares::new(name, strategy, get(row, "pass")?)))
        };
        let pools = read_by(session, "lock pools", &sql::LOCK_CLAIMED_POOLS, keys, decode).await?;
        self.busy |= pools.len() < names.len();
        Ok(pools.into_iter().collect())
    }

    async fn lock_queues(
        &mut self,
        session: &mut Session,
        wanted: &BTreeSet<&str>,
    ) -> Result<(), StoreError> {
        let keys = wanted.iter().map(|name| (*name).to_owned()).collect();
        let locked = read_by(session, "lock queues", &sql::LOCK_CLAIMED_QUEUES, keys, Locked::decode).await?;
        self.busy |= locked.len() < wanted.len();
        self.locked = locked.into_iter().map(|queue| (queue.name.clone(), queue)).collect();
        // Counted after the rows are locked: who had them before is seen now.
        let counted = self.locked.values().filter(|queue| queue.gate.counts_active());
        let keys = counted.map(|queue| queue.name.clone()).collect();
        for (name, active) in
            read_by(session, "count active jobs", &sql::SELECT_ACTIVE_OF_QUEUES, keys, count).await?
        {
            if let Some(queue) = self.locked.get_mut(&name) {
                queue.gate.active = active;
            }
        }
        Ok(())
    }

    /// A pool takes the place of the first of its queues that is named.
    fn order(&mut self, named: &[&ReadyQueue], ready: &[ReadyQueue], mut pools: BTreeMap<String, Shares>) {
        let names: BTreeSet<&str> = named.iter().map(|queue| queue.name.as_str()).collect();
        for queue in ready.iter().filter(|queue| queue.ready && !names.contains(queue.name.as_str())) {
            let pool = queue.pool.as_ref().and_then(|pool| pools.get_mut(pool));
            if let Some((pool, locked)) = pool.zip(self.locked.get(&queue.name)) {
                pool.add_elsewhere(locked.pass);
            }
        }
        let mut places: HashMap<String, usize> = HashMap::new();
        for queue in named {
            let Some(locked) = self.locked.get(&queue.name) else {
                if queue.pool.is_none() && !queue.limited {
                    self.stops.push(Stop::Queue(queue.name.clone()));
                }
                continue;
            };
            let Some(pool) = &locked.pool else {
                self.stops.push(Stop::Queue(queue.name.clone()));
                continue;
            };
            if let Some(shares) = pools.remove(pool) {
                places.insert(pool.clone(), self.stops.len());
                self.stops.push(Stop::Pool(shares));
            }
            if let Some(Stop::Pool(shares)) = places.get(pool).and_then(|at| self.stops.get_mut(*at)) {
                shares.add(queue.name.clone(), locked.weight, locked.pass, locked.claims);
            }
        }
    }

    /// How many of `room` jobs the queue's own limit allows.
    pub(super) fn room(&self, queue: &str, room: usize, now: Timestamp) -> usize {
        let Some(locked) = self.locked.get(queue) else { return room };
        room.min(usize::try_from(locked.gate.room(now)).unwrap_or(0))
    }

    /// Jobs of the queue start.
    pub(super) fn take(&mut self, queue: &str, jobs: usize, now: Timestamp) {
        if jobs == 0 {
            return;
        }
        let Some(locked) = self.locked.get_mut(queue).filter(|locked| locked.gate.limits()) else { return };
        (0..jobs).for_each(|_| locked.gate.take(now));
        if let Some(opens) = locked.gate.opens(now) {
            locked.gate.opens_at = Some(opens);
        }
        self.used.insert(queue.to_owned());
    }

    /// Writes the use of limits. Returns true when waiting jobs have to be released once a limit opens.
    pub(super) async fn write(mut self, session: &mut Session) -> Result<bool, StoreError> {
        let mut passes = Vec::new();
        for stop in &self.stops {
            let Stop::Pool(shares) = stop else { continue };
            passes.push(PoolPass { name: shares.pool.clone(), pass: shares.pass });
            for share in &shares.queues {
                let Some(locked) = self.locked.get_mut(&share.queue) else { continue };
                if locked.claims != share.claims {
                    (locked.pass, locked.claims) = (share.pass, share.claims);
                    self.used.insert(share.queue.clone());
                }
            }
        }
        if self.used.is_empty() {
            return Ok(false);
        }
        let used: Vec<&Locked> = self.used.iter().filter_map(|name| self.locked.get(name)).collect();
        let opening = used.iter().any(|queue| queue.gate.opens_at.is_some());
        let queues = used
            .into_iter()
            .map(|queue| QueueUse {
                name: queue.name.clone(),
                pass: queue.pass,
                claims: queue.claims,
                window_at: queue.gate.window_at,
                started: queue.gate.started,
                next_at: queue.gate.next_at,
                opens_at: queue.gate.opens_at,
            })
            .collect();
        let mut writes = Writes::default();
        writes.all("write queues", &sql::UPDATE_CLAIMED_QUEUES, queues);
        writes.all("write pools", &sql::UPDATE_CLAIMED_POOLS, passes);
        writes.run(session).await?;
        Ok(opening)
    }
}

/// Returns true when the queue has jobs and is in one of these pools.
fn in_pools(queue: &ReadyQueue, pools: &BTreeMap<String, Shares>) -> bool {
    queue.ready && queue.pool.as_ref().is_some_and(|pool| pools.contains_key(pool))
}

/// A name and a number.
pub(super) fn count(row: &Row) -> Result<(String, i64), Inconsistency> {
    Ok((get(row, "name")?, get(row, "active")?))
}
