//! Claim: `available → active`, a batch, with everything that is needed to resume where each job stopped.

mod broken;
mod gate;
mod keys;
mod line;
pub(in super::super) mod past;
mod shares;
mod tenants;

use super::super::definitions::Definitions;
use super::super::limited::LimitedQueues;
use super::super::rows::{self, Inconsistency, JobRow, Payer};
use super::super::session::{Arg, Args, Row, Session, limit};
use super::super::statement::{as_json, decode_readable, read_by};
use super::super::unit::Unit;
use super::super::workflows::StepInput;
use super::super::writer::Transaction;
use super::{admission, upkeep};
use crate::{Claim, ClaimRequest, EngagementClaim, JobKind, Past, Ring, StoreError, damage, sql};
use broken::Broken;
use keys::{KeyedLimits, Passage};
use line::{Line, Stop};
use past::Done;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use tenants::Tenants;
use turnstone_domain::budget::AppliedBudget;
use turnstone_domain::event::{EventBody, Started};
use turnstone_domain::job::Envelope;
use turnstone_domain::retry::RetryPolicy;
use turnstone_domain::state::Trigger;
use turnstone_domain::{AgentDefinition, Ids, Lease};

/// Jobs that are looked at in search of one that can be read.
const MOST_LOOKED_AT: usize = 4096;
/// The scheduler looks at least this often by itself; it is notified of anything that is due earlier.
const SOON_MS: i64 = 2_500;

/// A claim, and the queues that looked as if they could serve it.
struct Ask {
    /// The request of a worker; its queues are the requested ones among `ready`.
    request: ClaimRequest,
    /// Queues that have jobs, and those that have limits.
    ready: Vec<ReadyQueue>,
}

impl Ask {
    /// Looks for queues that have work for a request; `None` when there are none. An idle poll is this one read.
    async fn look(
        session: &mut Session,
        request: &ClaimRequest,
        limited: &LimitedQueues,
    ) -> Result<Option<Self>, StoreError> {
        if request.limit == 0 {
            return Ok(None);
        }
        let values = [request.kind.as_str().into(), request.now.0.into()];
        let (action, text) = ("look for work", &sql::SELECT_READY_QUEUES);
        let rows = session.look(action, text, Args::Values(&values)).await?;
        let ready = decode_readable(action, &rows, ReadyQueue::decode);
        limited.learn(ready.iter().filter(|queue| queue.limited).map(|queue| queue.name.clone()).collect());
        let queues = wanted(&request.queues, &ready);
        let has_work = !queues.is_empty();
        Ok(has_work.then(|| Self { request: ClaimRequest { queues, ..request.clone() }, ready }))
    }
}

/// A queue as the look before a claim sees it.
struct ReadyQueue {
    name: String,
    pool: Option<String>,
    /// True when it has a limit of its own.
    limited: bool,
    /// True when it has a job that may be claimed.
    ready: bool,
    /// True when jobs of any queue are set aside for a limit that may have opened.
    set_aside: bool,
    /// True when any tenant has a limit of active jobs.
    capped: bool,
    /// True when there is any budget that engagements share.
    budgeted: bool,
}

impl ReadyQueue {
    fn decode(row: &Row) -> Result<Self, Inconsistency> {
        Ok(Self {
            name: rows::get(row, "name")?,
            pool: rows::get(row, "pool")?,
            limited: rows::get(row, "limited")?,
            ready: rows::get(row, "ready")?,
            set_aside: rows::get(row, "set_aside")?,
            capped: rows::get(row, "capped")?,
            budgeted: rows::get(row, "budgeted")?,
        })
    }
}

/// Returns the queues to claim from: those requested that have a job, in their order. `*` means every queue.
fn wanted(requested: &[String], ready: &[ReadyQueue]) -> Vec<String> {
    let has_job = |queue: &&ReadyQueue| queue.ready;
    if requested.iter().any(|queue| queue == "*") {
        return ready.iter().filter(has_job).map(|queue| queue.name.clone()).collect();
    }
    let mut wanted: Vec<String> = Vec::new();
    for queue in
        requested.iter().filter(|name| ready.iter().filter(has_job).any(|queue| queue.name == **name))
    {
        if !wanted.contains(queue) {
            wanted.push(queue.clone());
        }
    }
    wanted
}

/// The result of a claim.
#[derive(Default)]
pub(in super::super) struct Claimed {
    pub claims: Vec<Claim>,
    /// True when a concurrent claim held something that this one had to leave out; another claim may get more.
    pub busy: bool,
}

/// Jobs that were chosen and started.
pub(super) struct TakenJobs {
    pub seqs: Vec<i64>,
    pub agents: HashMap<i64, Arc<AgentDefinition>>,
    /// Those of them that cannot be read.
    pub broken: Broken,
    /// True when a concurrent claim held something that this one had to leave out; another claim may get more.
    pub busy: bool,
    /// True when there is any budget that engagements share.
    budgeted: bool,
}

/// Claims up to `request.limit` jobs from the queues, in the order in which they are named; queues of one pool share by
/// their weights. A limit that another transaction uses just now is left out, so that no claim waits for another.
pub(in super::super) async fn apply(
    tx: &mut Transaction,
    request: &ClaimRequest,
) -> Result<Claimed, StoreError> {
    let Some(taken) = take(tx, request).await? else { return Ok(Claimed::default()) };
    let TakenJobs { seqs, mut agents, mut broken, busy, budgeted } = taken;
    let Transaction { session, unit, .. } = tx;
    let keys = seqs.to_vec();
    let decode = |row: &Row| {
        Ok((
            rows::get::<i64>(row, "job_seq")?,
            rows::envelope(row).map(|(_, retry, envelope)| (retry, envelope)),
        ))
    };
    let read = read_by(session, "read envelopes", &sql::SELECT_ENVELOPES_BY_JOB, keys, decode).await?;
    let mut envelopes: HashMap<i64, (RetryPolicy, Envelope)> =
        read.into_iter().filter_map(|(seq, envelope)| Some((seq, broken.keep(seq, envelope)?))).collect();
    for seq in seqs.iter().filter(|seq| !envelopes.contains_key(seq)) {
        broken.add(*seq, "what its client sent is not stored any more".to_owned());
    }
    let jobs = seqs.iter().filter_map(|seq| unit.job(*seq));
    let mut done = past::read(session, unit, jobs, |seq, error| {
        broken.keep::<()>(seq, Err(error));
    })
    .await?;
    let steps = seqs.iter().filter(|seq| unit.job(**seq).is_some_and(|job| job.workflow.is_some()));
    let steps = steps.copied().collect();
    let (action, text) = ("read steps", &sql::SELECT_WORKFLOW_INPUTS);
    let decode = |row: &Row| {
        let input = StepInput::decode(row).map(|(_, input)| input);
        Ok((rows::get::<i64>(row, "job_seq")?, input))
    };
    let read = read_by(session, action, text, steps, decode).await?;
    let mut steps: HashMap<i64, StepInput> =
        read.into_iter().filter_map(|(seq, input)| Some((seq, broken.keep(seq, input)?))).collect();
    broken.discard(unit, request.now)?;
    unit.flush(session).await?;
    let budgets = match budgeted {
        true => shared_budgets(session, unit, &seqs).await?,
        false => HashMap::new(),
    };
    let mut claims = Vec::with_capacity(seqs.len());
    for seq in seqs {
        let Some((retry, envelope)) = envelopes.remove(&seq).filter(|_| !broken.has(seq)) else { continue };
        let done = done.remove(&seq).unwrap_or_default();
        let mut claim = claimed(unit, seq, retry, envelope, done, agents.remove(&seq));
        if let Some(side) = claim.as_mut().and_then(|claim| claim.engagement.as_mut()) {
            let shared = budgets.get(&payer(unit, seq)).into_iter().flatten().cloned();
            side.budgets = shared.chain(std::mem::take(&mut side.budgets)).collect();
        }
        let step = steps.remove(&seq).unwrap_or_default();
        claims.extend(claim.map(|claim| Claim { parent_results: step.parent_results, ..claim }));
    }
    Ok(Claimed { claims, busy })
}

/// Whose spending a job's is: its tenant, or nothing, and its agent.
fn payer(unit: &Unit, seq: i64) -> Payer {
    let tenant = unit.job(seq).and_then(|job| job.tenant.clone()).unwrap_or_default();
    let agent = unit.engagement_of(seq).map(|row| row.engagement.agent.clone()).unwrap_or_default();
    Payer { tenant, agent }
}

/// The shared budgets that jobs may have to pay into, by who pays.
async fn shared_budgets(
    session: &mut Session,
    unit: &Unit,
    seqs: &[i64],
) -> Result<HashMap<Payer, Vec<AppliedBudget>>, StoreError> {
    let agents = seqs.iter().filter(|seq| unit.engagement_of(**seq).is_some());
    let payers: HashSet<Payer> = agents.map(|seq| payer(unit, *seq)).collect();
    let decode = |row: &Row| {
        let payer = Payer { tenant: rows::get(row, "tenant")?, agent: rows::get(row, "agent")? };
        Ok((payer, AppliedBudget { name: rows::get(row, "name")?, model: rows::get(row, "model")? }))
    };
    let (action, text) = ("look for budgets", &sql::SELECT_APPLIED_BUDGETS);
    let mut applied: HashMap<_, Vec<AppliedBudget>> = HashMap::new();
    for (payer, budget) in read_by(session, action, text, payers.into_iter().collect(), decode).await? {
        applied.entry(payer).or_default().push(budget);
    }
    Ok(applied)
}

/// Chooses jobs and starts them, in memory; what they use of limits and pools is written. The jobs are not written
/// before the unit is flushed. `None` when no queue has work.
pub(super) async fn take(
    tx: &mut Transaction,
    request: &ClaimRequest,
) -> Result<Option<TakenJobs>, StoreError> {
    let Transaction { session, unit, ids, definitions, limited, .. } = tx;
    let Some(ask) = Ask::look(session, request, limited).await? else { return Ok(None) };
    let request = &ask.request;
    let mut search = Search {
        request,
        tags: request.runtime_tags.as_ref().map(as_json).transpose()?,
        definitions,
        line: Line::form(session, &ask).await?,
        keys: KeyedLimits::default(),
        tenants: Tenants::lock(session, ask.ready.iter().any(|queue| queue.capped)).await?,
        agents: HashMap::new(),
        broken: Broken::default(),
        set_aside: ask.ready.iter().any(|queue| queue.set_aside),
        hasty: false,
    };
    let seqs = search.walk(session, unit).await?;
    let Search { line, keys, tenants, agents, mut broken, hasty, .. } = search;
    let busy = line.busy || keys.busy() || tenants.busy() || hasty;
    if line.write(session).await? | keys.write(session).await? {
        unit.rings.push(Ring::Due);
    }
    for seq in &seqs {
        if let Some(why) = unit.job(*seq).and_then(|job| job.damaged.clone()) {
            broken.add(*seq, why);
        }
        start(unit, *seq, request, &**ids)?;
    }
    let budgeted = ask.ready.iter().any(|queue| queue.budgeted);
    Ok(Some(TakenJobs { seqs, agents, broken, busy, budgeted }))
}

/// Jobs of one queue.
struct Wanted<'a> {
    request: &'a ClaimRequest,
    /// The features of the worker's runtime: JSON.
    tags: Option<&'a str>,
    queue: &'a str,
}

impl Wanted<'_> {
    fn values(&self, rows: usize) -> [Arg<'_>; 6] {
        let (request, tags) = (self.request, self.tags);
        let (kind, tenant) = (request.kind.as_str(), request.tenant.as_deref());
        [kind.into(), self.queue.into(), limit(rows).into(), request.now.0.into(), tenant.into(), tags.into()]
    }
}

/// The way of one claim through the queues.
struct Search<'a> {
    request: &'a ClaimRequest,
    /// The features of the worker's runtime: JSON.
    tags: Option<String>,
    definitions: &'a mut Definitions,
    line: Line,
    keys: KeyedLimits,
    tenants: Tenants,
    agents: HashMap<i64, Arc<AgentDefinition>>,
    /// Jobs that no version can read.
    broken: Broken,
    set_aside: bool,
    /// True when it stopped looking although there is more to look at.
    hasty: bool,
}

impl Search<'_> {
    /// The jobs to be claimed.
    async fn walk(&mut self, session: &mut Session, unit: &mut Unit) -> Result<Vec<i64>, StoreError> {
        let mut seqs = Vec::new();
        for mut stop in std::mem::take(&mut self.line.stops) {
            let room = self.request.limit - seqs.len();
            match &mut stop {
                _ if room == 0 => {}
                Stop::Queue(queue) => seqs.extend(self.serve(session, unit, queue, room).await?),
                Stop::Pool(shares) => loop {
                    let plan = shares.plan(self.request.limit - seqs.len());
                    if plan.is_empty() {
                        break;
                    }
                    for (at, requested) in plan {
                        let queue = shares.queues[at].queue.clone();
                        let got = self.serve(session, unit, &queue, requested).await?;
                        shares.took(at, requested, got.len());
                        seqs.extend(got);
                    }
                },
            }
            self.line.stops.push(stop);
        }
        Ok(seqs)
    }

    /// The next jobs of a queue, as many as its limit allows.
    async fn serve(
        &mut self,
        session: &mut Session,
        unit: &mut Unit,
        queue: &str,
        room: usize,
    ) -> Result<Vec<i64>, StoreError> {
        let now = self.request.now;
        let room = self.line.room(queue, room, now);
        if room == 0 {
            return Ok(Vec::new());
        }
        let tags = self.tags.clone();
        let jobs = Wanted { request: self.request, tags: tags.as_deref(), queue };
        if self.set_aside {
            self.keys.bring_forward(session, self.request, queue, room).await?;
        }
        upkeep::promote_for_claim(session, &mut unit.rings, &jobs.values(room), now).await?;
        let seqs = self.choose(session, unit, &jobs, room).await?;
        self.line.take(queue, seqs.len(), now);
        Ok(seqs)
    }

    /// The next jobs, with their agents. A job that this version cannot read is left for a newer worker; those behind
    /// it are looked at instead, so that it does not keep them from being claimed. So are those behind jobs whose limit
    /// is used up.
    async fn choose(
        &mut self,
        session: &mut Session,
        unit: &mut Unit,
        jobs: &Wanted<'_>,
        room: usize,
    ) -> Result<Vec<i64>, StoreError> {
        let (mut chosen, mut seen) = (Vec::new(), HashSet::new());
        let (mut requested, mut looked_at) = (room, 0);
        loop {
            let shut = self.tenants.shut()?;
            let [kind, queue, most, now, tenant, tags] = jobs.values(requested);
            let values = [kind, queue, most, now, tenant, tags, shut.as_deref().into()];
            let rows = session.rows("claim jobs", &sql::LOCK_AVAILABLE_JOBS, Args::Values(&values)).await?;
            looked_at += rows.len();
            let (all, mut found) = (rows.len() < requested, Vec::with_capacity(rows.len()));
            for row in &rows {
                match JobRow::decode(row).map_err(StoreError::from) {
                    Ok(job) if seen.contains(&job.seq) => {}
                    Ok(job) => found.push(job),
                    Err(error) if damage::count(&error.to_string()) => {
                        tracing::error!(%error, "a job that cannot be read is left where it is");
                    }
                    Err(_) => {}
                }
            }
            seen.extend(found.iter().map(|job| job.seq));
            let shut = self.sort(session, unit, found, room, &mut chosen).await?;
            if !shut.is_empty() {
                self.keys.turn_away(session, unit, &shut, self.request.now).await?;
                seen.retain(|seq| shut.iter().all(|job| job.seq != *seq));
            }
            if chosen.len() >= room || all {
                return Ok(chosen);
            }
            if requested >= MOST_LOOKED_AT || looked_at >= MOST_LOOKED_AT {
                self.hasty = !shut.is_empty();
                return Ok(chosen);
            }
            requested = (requested * 4).clamp(8, MOST_LOOKED_AT);
        }
    }

    /// Adds the jobs that may start to `chosen`; returns those whose limit is used up.
    async fn sort(
        &mut self,
        session: &mut Session,
        unit: &mut Unit,
        found: Vec<JobRow>,
        room: usize,
        chosen: &mut Vec<i64>,
    ) -> Result<Vec<JobRow>, StoreError> {
        let mut seqs: Vec<i64> = found.iter().map(|job| job.seq).collect();
        let limited: Vec<JobRow> = found.iter().filter(|job| job.limit_key.is_some()).cloned().collect();
        unit.take_in(session, found).await?;
        let agents = runnable(session, unit, &mut seqs, self.definitions, &mut self.broken).await?;
        self.agents.extend(agents);
        let names = limited.iter().filter_map(|job| job.limit_key.clone()).collect();
        self.keys.lock(session, names).await?;
        let mut limited: HashMap<i64, JobRow> = limited.into_iter().map(|job| (job.seq, job)).collect();
        let mut shut = Vec::new();
        for seq in seqs {
            if chosen.len() >= room {
                break;
            }
            let tenant = unit.job(seq).and_then(|job| job.tenant.clone());
            if !self.tenants.has_room(tenant.as_deref()) {
                continue;
            }
            let key = limited.get(&seq).and_then(|job| job.limit_key.as_deref());
            match key.map_or(Passage::Free, |key| self.keys.pass(key, self.request.now)) {
                Passage::Free => {
                    self.tenants.take(tenant.as_deref());
                    chosen.push(seq);
                }
                Passage::Shut => shut.extend(limited.remove(&seq)),
                Passage::Unknown => {}
            }
        }
        Ok(shut)
    }
}

/// The agents of these jobs. Jobs whose agent this version cannot read are taken out; those whose agent no version can
/// read are `broken`.
async fn runnable(
    session: &mut Session,
    unit: &Unit,
    seqs: &mut Vec<i64>,
    definitions: &mut Definitions,
    broken: &mut Broken,
) -> Result<HashMap<i64, Arc<AgentDefinition>>, StoreError> {
    let mut agents = HashMap::new();
    let mut left = Vec::new();
    for seq in seqs.iter() {
        let Some(row) = unit.engagement_of(*seq) else { continue };
        match definitions.get(session, &row.digest).await {
            Ok(agent) => drop(agents.insert(*seq, agent)),
            Err(StoreError::NotRegistered { agent, .. }) => broken.refuse(*seq, admission::refusal(&agent)),
            Err(error @ StoreError::Inconsistent { .. }) => broken.add(*seq, error.to_string()),
            Err(error @ StoreError::Unreadable { .. }) => {
                if damage::count(&error.to_string()) {
                    let engagement = &row.engagement.id;
                    tracing::error!(%engagement, %error, "an agent cannot be read; its job is left where it is");
                }
                left.push(*seq);
            }
            Err(error) => return Err(error),
        }
    }
    seqs.retain(|seq| !left.contains(seq));
    Ok(agents)
}

/// Returns true when this active job may need the scheduler before its next periodic look.
pub(in super::super) fn ends_soon(job: &JobRow) -> bool {
    [job.timeout_ms, job.lease_ms].into_iter().flatten().any(|ms| ms < SOON_MS)
}

fn start(unit: &mut Unit, seq: i64, request: &ClaimRequest, ids: &dyn Ids) -> Result<(), StoreError> {
    let job = unit.change_job(seq)?;
    job.step(Trigger::Claim, request.now)?;
    job.attempt += 1;
    job.started_at = job.started_at.or(Some(request.now));
    job.claimed_at = Some(request.now);
    let worker = (!request.worker_id.is_empty()).then(|| request.worker_id.clone());
    job.worker_id.clone_from(&worker);
    job.lease_token = Some(ids.next());
    let lease_ms = match request.kind {
        JobKind::Plain => job.visibility_ms.unwrap_or(request.lease_ms),
        JobKind::Agent => request.lease_ms,
    };
    job.lease_ms = Some(lease_ms);
    job.lease_expires_at = Some(request.now.plus_ms(lease_ms));
    if request.kind == JobKind::Plain && ends_soon(job) {
        unit.rings.push(Ring::Due);
    }
    if request.kind == JobKind::Agent {
        // The first write of its turn also writes this event to its stream.
        unit.change_job(seq)?.events = 1;
        return Ok(());
    }
    let started = Started { attempt: unit.job(seq).map_or(0, |job| job.attempt), worker_id: worker.clone() };
    unit.note(seq, EventBody::JobStarted(started), request.now)
}

/// Makes the claim of a job that was taken; `done` is what it did in earlier attempts.
pub(in super::super) fn claimed(
    unit: &Unit,
    seq: i64,
    retry: RetryPolicy,
    envelope: Envelope,
    mut done: Done,
    agent: Option<Arc<AgentDefinition>>,
) -> Option<Claim> {
    let job = unit.job(seq)?;
    let engagement = unit.engagement_of(seq).zip(agent).map(|(row, agent)| EngagementClaim {
        engagement: row.engagement.clone(),
        agent,
        position: job.position.clone().unwrap_or_default(),
        budget: unit.budget_of(seq),
        depth: row.depth,
        tree_jobs: row.tree_jobs,
        budgets: row
            .limited_by
            .iter()
            .map(|name| AppliedBudget { name: name.clone(), model: None })
            .collect(),
        past: match row.messages > 0 || past::is_resumed(unit, job) {
            true => done.past(row.messages),
            false => Past::Nothing,
        },
        checkpoints: std::mem::take(&mut done.checkpoints),
        record_end: row.record_end,
    });
    Some(Claim {
        job: job.id.clone(),
        job_type: job.job_type.clone(),
        attempt: job.attempt,
        failures: job.failures,
        lapses: job.lapses,
        retry,
        timeout_ms: job.timeout_ms,
        envelope,
        parent_results: None,
        priority: job.priority,
        created_at: job.created_at,
        lease: Lease {
            job: job.id.clone(),
            token: job.lease_token.clone()?,
            expires_at: job.lease_expires_at?,
        },
        engagement,
    })
}

#[cfg(test)]
mod tests {
    use super::{ReadyQueue, wanted};

    #[test]
    fn queues_keep_the_order_in_which_they_were_asked_for() {
        let list = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>();
        let queue = |name: &&str, ready: bool| ReadyQueue {
            name: (*name).to_owned(),
            pool: None,
            limited: !ready,
            ready,
            set_aside: false,
            capped: false,
            budgeted: false,
        };
        let ready = |names: &[&str]| names.iter().map(|name| queue(name, true)).collect::<Vec<_>>();
        assert_eq!(wanted(&list(&["b", "a", "b", "c"]), &ready(&["a", "b"])), list(&["b", "a"]));
        assert_eq!(wanted(&list(&["*"]), &ready(&["a", "b"])), list(&["a", "b"]));
        assert!(wanted(&list(&["x"]), &ready(&["a"])).is_empty());
        assert!(wanted(&list(&["a", "*"]), &[queue(&"a", false)]).is_empty(), "its limit is used up");
    }
}
