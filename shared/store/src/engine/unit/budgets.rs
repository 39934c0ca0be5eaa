//! Budgets in a unit of work: their values when they were read, their values now, and the amount that each job has
//! reserved.
//!
//! They are written by differences, so that a budget that many processes use need not be as it was read. Two rules
//! hold all the same: a reservation never exceeds what is left, and a warning is given once. The statement itself enforces
//! them. When one fails, the whole transaction fails, and is tried again with the rows locked.

use super::super::rows::{
    BudgetDay, CallCost, EngagementRow, Fields, Inconsistency, ReadCounters, Reservation, Share, TotalsMove,
    WaitRow, budget, decode, get,
};
use super::super::session::Session;
use super::super::statement::{Writes, read_by};
use super::Unit;
use crate::{StoreError, sql};
use std::collections::{BTreeMap, BTreeSet};
use std::mem::take;
use turnstone_domain::budget::{ALL_DAYS, Budget, BudgetWait, Measure, WARN_AT, day_of};
use turnstone_domain::event::{BudgetWarning, EventBody};
use turnstone_domain::{CallId, RecordEnd, Timestamp};

/// How a budget moves.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(in super::super) struct Move {
    pub settled: i64,
    pub reserved: i64,
    pub money_settled: i64,
    pub money_reserved: i64,
}

/// The most that the reservations of a unit add at once to what is settled and reserved; `None` without one. What a call used
/// above its reservation counts only for the reservations behind it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Granted {
    tokens: Option<i64>,
    money: Option<i64>,
}

/// Counters of an engagement as they are now, and as they were read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Counters {
    turns: i64,
    events: i64,
    messages: i64,
    record_end: RecordEnd,
    read: ReadCounters,
}

impl Counters {
    pub(super) fn of(row: &EngagementRow) -> Self {
        let (turns, events, messages) = (row.engagement.turns, row.events, row.messages);
        Self { turns, events, messages, record_end: row.record_end, read: row.read }
    }
}

/// A row of a shared budget.
#[derive(Clone, Debug)]
pub(in super::super) struct Shared {
    pub seq: i64,
    pub name: String,
    /// Days since the epoch; [`ALL_DAYS`] counts altogether.
    pub day: i64,
    pub currency: String,
}

/// The budgets of a unit.
#[derive(Default)]
pub(in super::super) struct Budgets {
    read: BTreeMap<i64, Budget>,
    now: BTreeMap<i64, Budget>,
    moves: BTreeMap<i64, Move>,
    granted: BTreeMap<i64, Granted>,
    shared: BTreeMap<i64, Shared>,
    reserved: Vec<Reservation>,
    settled: BTreeSet<i64>,
    waits: Vec<WaitRow>,
    costs: Vec<CallCost>,
}

/// A row of a shared budget; `None` for one that is not there yet.
type FoundBudget = (String, i64, Option<(Shared, Budget)>);

fn found(row: &impl Fields) -> Result<FoundBudget, Inconsistency> {
    let (name, day) = (get::<String>(row, "name")?, get::<i64>(row, "day")?);
    let Some(seq) = get::<Option<i64>>(row, "seq")? else { return Ok((name, day, None)) };
    let currency = get::<Option<String>>(row, "currency")?.unwrap_or_default();
    let shared = Shared { seq, name: name.clone(), day, currency };
    Ok((name, day, Some((shared, budget(row)?))))
}

/// Any row; one of an engagement has no name.
fn any(row: &impl Fields) -> Result<(i64, Option<Shared>, Budget), Inconsistency> {
    let seq = get::<i64>(row, "seq")?;
    let named = get::<Option<String>>(row, "name")?.zip(get::<Option<i64>>(row, "day")?);
    let currency = get::<Option<String>>(row, "currency")?.unwrap_or_default();
    Ok((seq, named.map(|(name, day)| Shared { seq, name, day, currency }), budget(row)?))
}

impl Budgets {
    /// Takes in a row, unless it is known.
    pub(super) fn take_in(&mut self, seq: i64, budget: Budget) {
        self.read.entry(seq).or_insert(budget);
        self.now.entry(seq).or_insert(budget);
    }

    /// A budget as it is now.
    pub(in super::super) fn of(&self, seq: i64) -> Option<Budget> {
        self.now.get(&seq).copied()
    }

    /// The rows of the shared budgets with these names that count on this day.
    pub(in super::super) fn shared(&self, names: &[String], day: i64) -> Vec<Shared> {
        let counts = |row: &&Shared| (row.day == day || row.day == ALL_DAYS) && names.contains(&row.name);
        self.shared.values().filter(counts).cloned().collect()
    }

    fn move_by(&mut self, seq: i64, by: Move) {
        let sum = self.moves.entry(seq).or_default();
        sum.settled = sum.settled.saturating_add(by.settled);
        sum.reserved = sum.reserved.saturating_add(by.reserved);
        sum.money_settled = sum.money_settled.saturating_add(by.money_settled);
        sum.money_reserved = sum.money_reserved.saturating_add(by.money_reserved);
        let granted = self.granted.entry(seq).or_default();
        if by.reserved > 0 {
            granted.tokens = granted.tokens.max(Some(sum.settled.saturating_add(sum.reserved)));
        }
        if by.money_reserved > 0 {
            granted.money = granted.money.max(Some(sum.money_settled.saturating_add(sum.money_reserved)));
        }
        if let Some(budget) = self.now.get_mut(&seq) {
            budget.settled = budget.settled.saturating_add(by.settled);
            budget.reserved = budget.reserved.saturating_add(by.reserved);
            budget.money.settled = budget.money.settled.saturating_add(by.money_settled);
            budget.money.reserved = budget.money.reserved.saturating_add(by.money_reserved);
        }
    }

    /// Where what was spent before has to lie for this unit to be right about the warnings that it gives.
    fn bounds(&self, seq: i64, measure: Measure, by: i64) -> (i64, i64) {
        let Some((read, from)) =
            self.read.get(&seq).filter(|_| by != 0).and_then(|read| Some((read, read.warns_from(measure)?)))
        else {
            return (0, i64::MAX);
        };
        let before = read.purse(measure).settled;
        match (before < from, before.saturating_add(by) < from) {
            (true, true) => (0, from - 1 - by),
            (true, false) => (from - by, from - 1),
            (false, _) => (from, i64::MAX),
        }
    }

    /// Adds the writes of budgets, and of the counters of these engagements. An engagement has one row for both,
    /// and PostgreSQL applies only one of two changes that one statement makes to a row.
    pub(super) async fn write(
        &mut self,
        session: &mut Session,
        writes: &mut Writes,
        mut counted: BTreeMap<i64, Counters>,
    ) -> Result<(), StoreError> {
        let gone: Vec<i64> = take(&mut self.settled).into_iter().collect();
        let (action, text) = ("give reservations back", &sql::DELETE_RESERVATIONS);
        if self.reserved.is_empty() {
            writes.some(action, text, gone);
        } else {
            // Apart, because statements that are run together do not see one another's rows.
            let mut first = Writes::default();
            first.some(action, text, gone);
            first.run(session).await?;
        }
        writes.insert("write reservations", take(&mut self.reserved));
        writes.all("wait for budgets", &sql::INSERT_BUDGET_WAITS, take(&mut self.waits));
        let (mut moves, granted) = (take(&mut self.moves), take(&mut self.granted));
        for seq in counted.keys() {
            moves.entry(*seq).or_default();
        }
        let mut rows = Vec::with_capacity(moves.len());
        // From the highest number to the lowest: that is the order in which all lock them.
        for (seq, by) in moves.into_iter().rev() {
            let counters = counted.remove(&seq);
            let (least, most) = self.bounds(seq, Measure::Tokens, by.settled);
            let (money_least, money_most) = self.bounds(seq, Measure::Money, by.money_settled);
            let Move { settled, reserved, money_settled, money_reserved } = by;
            let granted = granted.get(&seq).copied().unwrap_or_default();
            rows.push(TotalsMove {
                seq,
                turns: counters.map(|row| row.turns),
                events: counters.map(|row| row.events),
                messages: counters.map(|row| row.messages),
                writes: counters.map(|row| row.record_end.writes),
                turn: counters.map(|row| row.record_end.turn),
                phase: counters.map(|row| row.record_end.phase_number()),
                read_events: counters.map(|row| row.read.events),
                read_messages: counters.map(|row| row.read.messages),
                read_writes: counters.map(|row| row.read.writes),
                settled,
                reserved,
                money_settled,
                money_reserved,
                least,
                most,
                money_least,
                money_most,
                granted: granted.tokens,
                money_granted: granted.money,
            });
            self.read.extend(self.now.get(&seq).map(|now| (seq, *now)));
        }
        writes.all("write totals", &sql::UPDATE_TOTALS, rows);
        Ok(())
    }

    /// Adds the costs of tool calls.
    pub(super) fn write_costs(&mut self, writes: &mut Writes) {
        writes.all("write the cost of tool calls", &sql::UPDATE_TOOL_CALL_COSTS, take(&mut self.costs));
    }
}

impl Unit {
    /// Reads what these jobs have reserved beside the tokens of their engagements' budgets.
    pub(super) async fn read_shares(
        &mut self,
        session: &mut Session,
        jobs: Vec<i64>,
    ) -> Result<(), StoreError> {
        let keys = jobs.into_iter().collect();
        let (action, text) = ("read reservations", &sql::SELECT_RESERVATIONS_BY_JOB);
        for row in read_by(session, action, text, keys, decode::<Reservation>).await? {
            let Reservation { job_seq, budget_seq, tokens, money } = row;
            if let Some(job) = self.jobs.get_mut(&job_seq) {
                job.shares.push(Share { budget_seq, tokens, money });
            }
        }
        Ok(())
    }

    /// Reads the rows of shared budgets for these days, and opens those that are not there yet.
    pub(in super::super) async fn read_shared(
        &mut self,
        session: &mut Session,
        names: &BTreeSet<(String, i64)>,
    ) -> Result<(), StoreError> {
        if names.is_empty() {
            return Ok(());
        }
        let (action, text) = ("read shared budgets", &sql::SELECT_SHARED_BUDGETS);
        let key = |(name, day): &(String, i64)| BudgetDay { name: name.clone(), day: *day };
        let keys: Vec<BudgetDay> = names.iter().map(key).collect();
        let mut rows = read_by(session, action, text, keys.clone(), found).await?;
        let missing = rows.iter().filter(|(_, _, row)| row.is_none());
        let missing: Vec<BudgetDay> =
            missing.map(|(name, day, _)| BudgetDay { name: name.clone(), day: *day }).collect();
        if !missing.is_empty() {
            let mut writes = Writes::default();
            writes.some("open shared budgets", &sql::INSERT_SHARED_BUDGETS, missing);
            writes.run(session).await?;
            rows = read_by(session, action, text, keys, found).await?;
        }
        for (shared, budget) in rows.into_iter().filter_map(|(_, _, row)| row) {
            self.budgets.take_in(shared.seq, budget);
            self.budgets.shared.insert(shared.seq, shared);
        }
        Ok(())
    }

    /// Reads the shared budgets of which these jobs have set something aside.
    pub(in super::super) async fn read_held(
        &mut self,
        session: &mut Session,
        jobs: &[i64],
    ) -> Result<(), StoreError> {
        let shares = jobs.iter().filter_map(|seq| self.jobs.get(seq)).flat_map(|job| &job.shares);
        let seqs: BTreeSet<i64> =
            shares.map(|share| share.budget_seq).filter(|seq| self.budgets.of(*seq).is_none()).collect();
        let keys = seqs.into_iter().collect();
        for (seq, shared, budget) in
            read_by(session, "read budgets", &sql::SELECT_BUDGETS_BY_SEQ, keys, any).await?
        {
            self.budgets.take_in(seq, budget);
            self.budgets.shared.extend(shared.map(|shared| (seq, shared)));
        }
        Ok(())
    }

    /// Locks the budgets of these jobs' engagements and every shared one that was read, and takes them as they are now.
    pub(in super::super) async fn lock_budgets(
        &mut self,
        session: &mut Session,
        jobs: &[i64],
    ) -> Result<(), StoreError> {
        let own = jobs.iter().filter_map(|seq| self.engagement_of(*seq)).map(|row| row.budget_seq);
        let seqs: BTreeSet<i64> = own.chain(self.budgets.shared.keys().copied()).collect();
        let keys = seqs.into_iter().collect();
        for (seq, _, budget) in read_by(session, "lock budgets", &sql::LOCK_BUDGETS, keys, any).await? {
            self.budgets.read.insert(seq, budget);
            self.budgets.now.insert(seq, budget);
        }
        Ok(())
    }

    /// The rows of the shared budgets with these names that count on this day.
    pub(in super::super) fn shared_budgets(&self, names: &[String], day: i64) -> Vec<Shared> {
        self.budgets.shared(names, day)
    }

    /// A budget that was read, as it is now.
    pub(in super::super) fn budget(&self, seq: i64) -> Budget {
        self.budgets.of(seq).unwrap_or_default()
    }

    /// Returns the budget of a job's engagement; a plain job has an unlimited one, which is not stored.
    pub(in super::super) fn budget_of(&self, job_seq: i64) -> Budget {
        self.engagement_of(job_seq).and_then(|row| self.budgets.of(row.budget_seq)).unwrap_or_default()
    }

    /// Moves the tokens of the budget of a job's engagement; every engagement that shares it sees the move.
    pub(in super::super) fn move_budget(&mut self, job_seq: i64, settle: i64, reserve: i64) {
        if let Some(budget_seq) = self.engagement_of(job_seq).map(|row| row.budget_seq) {
            self.budgets.move_by(budget_seq, Move { settled: settle, reserved: reserve, ..Move::default() });
        }
    }

    /// Moves a budget for a job that spends, and warns when that brings it close to its limit.
    pub(in super::super) fn spend(
        &mut self,
        job_seq: i64,
        budget_seq: i64,
        by: Move,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let before = self.budget(budget_seq);
        self.budgets.move_by(budget_seq, by);
        let after = self.budget(budget_seq);
        for measure in [Measure::Tokens, Measure::Money] {
            let (was, is) = (before.purse(measure).settled, after.purse(measure).settled);
            let Some(from) = after.warns_from(measure).filter(|from| was < *from && is >= *from) else {
                continue;
            };
            tracing::debug!(budget_seq, from, "a budget comes close to its limit");
            let percent = after.warn_at.unwrap_or(WARN_AT);
            // Other engagements spend from a shared one as well; followers of this job do not see their spending.
            let budget = self.budgets.shared.get(&budget_seq).map(|shared| shared.name.to_string());
            let (limit, settled) = match budget {
                Some(_) => (None, None),
                None => (after.purse(measure).limit, Some(is)),
            };
            let warning = BudgetWarning { unit: measure, percent, budget, limit, settled };
            self.note(job_seq, EventBody::BudgetWarning(warning), now)?;
        }
        Ok(())
    }

    /// Sets something aside for a job beyond the tokens of its engagement's budget.
    pub(in super::super) fn reserve_share(&mut self, job_seq: i64, share: Share) -> Result<(), StoreError> {
        let Share { budget_seq, tokens, money } = share;
        self.budgets.reserved.push(Reservation { job_seq, budget_seq, tokens, money });
        self.budgets.move_by(
            share.budget_seq,
            Move { reserved: share.tokens, money_reserved: share.money, ..Move::default() },
        );
        self.change_job(job_seq)?.shares.push(share);
        Ok(())
    }

    /// Reserves money for a payment of the same commit.
    pub(in super::super) fn set_aside(&mut self, budget_seq: i64, money: i64) {
        self.budgets.move_by(budget_seq, Move { money_reserved: money, ..Move::default() });
    }

    /// Takes away the amounts that a job has reserved beyond the tokens of its engagement's budget; the caller
    /// changes the budgets.
    pub(in super::super) fn take_shares(&mut self, job_seq: i64) -> Result<Vec<Share>, StoreError> {
        let shares = take(&mut self.change_job(job_seq)?.shares);
        if !shares.is_empty() {
            self.budgets.reserved.retain(|row| row.job_seq != job_seq);
            self.budgets.settled.insert(job_seq);
        }
        Ok(shares)
    }

    /// Gives every outstanding reservation of a job back.
    pub(in super::super) fn give_back(&mut self, job_seq: i64) -> Result<(), StoreError> {
        let reserved = take(&mut self.change_job(job_seq)?.reserved);
        if reserved > 0 {
            self.move_budget(job_seq, 0, -reserved);
        }
        for share in self.take_shares(job_seq)? {
            let by = Move { reserved: -share.tokens, money_reserved: -share.money, ..Move::default() };
            self.budgets.move_by(share.budget_seq, by);
        }
        Ok(())
    }

    /// Records the cost of a tool call.
    pub(in super::super) fn cost_of_call(&mut self, call: &CallId, money: i64) {
        self.budgets.costs.push(CallCost { call_id: call.clone(), cost: money });
    }

    /// Remembers what a job waits for, whose last call did not fit into a budget, and when it may resume by itself.
    pub(in super::super) fn wait_for(&mut self, job_seq: i64, wait: &BudgetWait, due_at: Option<Timestamp>) {
        let Some(own) = self.engagement_of(job_seq).map(|row| row.budget_seq) else { return };
        let attempt = self.job(job_seq).map_or(0, |job| job.attempt);
        let day = wait.resets_at.map_or(ALL_DAYS, |at| day_of(at) - 1);
        let name = wait.name.clone();
        self.budgets.waits.push(WaitRow { job_seq, budget_seq: own, name, day, attempt, due_at });
    }
}
