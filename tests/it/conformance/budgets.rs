//! Budgets in money and shared budgets: nothing is granted beyond a limit.

use super::backend::Opened;
use super::jobs::{LAPSED, LEASE, NOW, agent, complete, engagement, nothing};
use super::on_every_store;
use std::collections::BTreeMap;
use turnstone_domain::budget::{BudgetMove, BudgetRule, BudgetWait, Charge, ChargeMove, Measure, end_of};
use turnstone_domain::error::FailureKind;
use turnstone_domain::{
    CallId, EventName, JobError, JobId, JobState, Lease, NewJob, Settlement, Timestamp, TurnWrite, Wait,
};
use turnstone_store::{Budgets, Claim, Duty, JobKind, LedgerError, OwnBudget, Raise};

on_every_store![
    a_call_is_reserved_in_every_budget_that_applies_or_in_none,
    a_claim_names_the_budgets_that_apply,
    a_new_day_has_a_new_allowance,
    money_is_bounded_in_the_engagement_and_in_shared_budgets,
    without_a_price_no_budget_in_money_lets_a_call_through,
    a_crash_leaves_no_reservation_behind,
    a_reservation_replaces_the_earlier_one,
    a_tool_call_is_paid_for_at_once,
    a_raise_resumes_parked_and_retryable_jobs,
    a_delegate_that_parks_sees_a_raise_after_its_refusal,
    a_job_that_parks_for_a_deleted_budget_resumes,
    a_job_parked_for_a_daily_budget_resumes_the_next_day,
    a_job_that_was_claimed_since_waits_for_nothing,
    a_warning_is_given_once_per_budget,
    a_limit_below_the_spent_amount_refuses_every_call,
    what_a_call_used_above_its_reservation_is_booked_and_nothing_starts_after_it,
    a_reservation_in_an_overspent_budget_is_replaced_within_what_is_left,
    tenants_see_and_raise_their_own_budgets_only,
    a_repeated_raise_changes_nothing,
    a_call_is_reserved_without_a_limit_too,
];

const DAY: i64 = 86_400_000;

pub(super) fn rule(name: &str, change: impl FnOnce(&mut BudgetRule)) -> BudgetRule {
    let mut rule = BudgetRule::of(name.parse().unwrap());
    change(&mut rule);
    rule
}

pub(super) fn of_tenant(tenant: &str) -> NewJob {
    let mut job = agent(None);
    job.terms.tenant = Some(tenant.to_owned());
    job
}

fn charge(money: Option<i64>, budgets: &[&str]) -> Charge {
    let budgets = budgets.iter().map(|name| (*name).to_owned()).collect();
    Charge { what: "model p/m".into(), money, currency: "USD".into(), budgets }
}

pub(super) fn reserve(tokens: i64, money: Option<i64>, budgets: &[&str]) -> TurnWrite {
    TurnWrite {
        budget: Some(BudgetMove::Reserve { tokens }),
        charge: Some(Box::new(ChargeMove::Reserve(charge(money, budgets)))),
        ..TurnWrite::default()
    }
}

pub(super) fn book(reserved: i64, used: i64, money: i64) -> TurnWrite {
    TurnWrite {
        budget: Some(BudgetMove::Settle { reserved, used }),
        charge: Some(Box::new(ChargeMove::Settle { money, calls: Vec::new() })),
        ..TurnWrite::default()
    }
}

fn exceeded(resets_at: Option<Timestamp>, budget: Option<&str>) -> JobError {
    let mut error = JobError::new(FailureKind::TokenBudget, "too little is left");
    if let Some(budget) = budget {
        error = error.with("budget", budget);
    }
    resets_at.map_or(error.clone(), |at| error.with("resets_at", at.to_rfc3339()))
}

fn park(budget: Option<&str>, resets_at: Option<Timestamp>) -> Settlement {
    Settlement::Park {
        wait: Wait::Raise(BudgetWait {
            name: budget.map(str::to_owned),
            resets_at,
            measure: Measure::Tokens,
            needed: None,
            least: None,
            until: None,
        }),
    }
}

impl Opened {
    fn budgets(&self) -> &Budgets {
        &self.store.budgets
    }

    pub(super) async fn rule(&self, name: &str, change: impl FnOnce(&mut BudgetRule)) {
        assert!(self.budgets().set(rule(name, change), None, NOW).await.unwrap());
    }

    async fn held_of(&self, job: NewJob) -> Claim {
        let id = self.push(job).await;
        let held = self.claim(JobKind::Agent, 1).await.remove(0);
        assert_eq!(held.job, id, "another job stood in the way");
        held
    }

    async fn write(&self, lease: &Lease, write: TurnWrite) -> Result<(), LedgerError> {
        self.write_at(lease, write, NOW).await
    }

    async fn write_at(&self, lease: &Lease, write: TurnWrite, now: Timestamp) -> Result<(), LedgerError> {
        self.store.ledger.checkpoint(lease, write, now, LEASE).await.map(drop)
    }

    /// Returns the settled and reserved tokens, then the settled and reserved money, of one row of a shared budget.
    pub(super) async fn row(&self, name: &str, day: Option<i64>) -> (i64, i64, i64, i64) {
        let listed = self.budgets().list(Some(name), None, Timestamp(0)).await.unwrap();
        let row = listed[0].rows.iter().find(|row| row.day == day);
        let budget = row.map(|row| row.budget).unwrap_or_default();
        (budget.settled, budget.reserved, budget.money.settled, budget.money.reserved)
    }

    /// Asserts that the reservations of the jobs and of the budgets agree. Beyond the limit of a shared budget is at most what
    /// was used above reservations of it: tokens and money by its name.
    pub(super) async fn is_sound(&self, above: &BTreeMap<String, (i64, i64)>) {
        let broken = "SELECT count(*) FROM totals AS b WHERE b.name IS NOT NULL AND (b.reserved <> \
                      (SELECT coalesce(sum(r.tokens), 0) FROM reservations AS r WHERE r.budget_seq = b.seq) \
                      OR b.money_reserved <> (SELECT coalesce(sum(r.money), 0) FROM reservations AS r WHERE r.budget_seq = b.seq))";
        assert_eq!(self.query(broken).await, 0);
        let names = self.budgets().list(None, None, Timestamp(0)).await.unwrap();
        for name in names.iter().map(|budget| budget.rule.name.to_string()) {
            let (tokens, money) = above.get(&name).copied().unwrap_or_default();
            let over = format!(
                "SELECT count(*) FROM totals WHERE name = '{name}' AND (settled + reserved - {tokens} > token_limit \
                 OR money_settled + money_reserved - {money} > money_limit)"
            );
            assert_eq!(self.query(&over).await, 0, "{name}");
        }
    }

    pub(super) async fn nothing_is_reserved(&self) {
        assert_eq!(self.query("SELECT count(*) FROM reservations").await, 0);
        assert_eq!(
            self.query("SELECT count(*) FROM totals WHERE reserved <> 0 OR money_reserved <> 0").await,
            0
        );
    }

    async fn count(&self, job: &JobId, name: EventName) -> usize {
        self.events(job).await.into_iter().filter(|event| *event == name).count()
    }
}

async fn a_call_is_reserved_in_every_budget_that_applies_or_in_none(at: &Opened) {
    at.rule("tenant/acme", |rule| rule.tokens_per_day = Some(100)).await;
    at.rule("model/p/m", |rule| rule.tokens = Some(60)).await;
    let held = at.held_of(of_tenant("acme")).await;
    let both = ["tenant/acme", "model/p/m"];
    let refused = at.write(&held.lease, reserve(61, None, &both)).await.unwrap_err();
    let LedgerError::BudgetExceeded { left: 60, needed: 61, of } = refused else { panic!("{refused}") };
    assert_eq!((of.name.as_deref(), of.measure, of.resets_at), (Some("model/p/m"), Measure::Tokens, None));
    assert_eq!(at.row("tenant/acme", Some(0)).await, (0, 0, 0, 0), "nothing is reserved in the other");
    at.write(&held.lease, reserve(60, None, &both)).await.unwrap();
    assert_eq!(at.row("tenant/acme", Some(0)).await, (0, 60, 0, 0));
    assert_eq!(at.row("model/p/m", None).await, (0, 60, 0, 0));
    at.is_sound(&BTreeMap::new()).await;
    at.write(&held.lease, book(60, 25, 0)).await.unwrap();
    assert_eq!(at.row("tenant/acme", Some(0)).await, (25, 0, 0, 0));
    assert_eq!(at.row("model/p/m", None).await, (25, 0, 0, 0));
    at.write(&held.lease, reserve(35, None, &both)).await.unwrap();
    at.settle(&held.lease, complete()).await;
    at.nothing_is_reserved().await;
}

async fn a_claim_names_the_budgets_that_apply(at: &Opened) {
    for name in
        ["fleet", "tenant/acme", "tenant/other", "agent/a", "agent/b", "model/p/m", "tenant/acme/model/p/m"]
    {
        at.rule(name, |rule| rule.tokens = Some(1000)).await;
    }
    let names = |claim: &Claim| -> Vec<String> {
        claim.engagement.as_ref().unwrap().budgets.iter().map(|budget| budget.name.clone()).collect()
    };
    let held = at.held_of(of_tenant("acme")).await;
    assert_eq!(names(&held), ["agent/a", "fleet", "model/p/m", "tenant/acme", "tenant/acme/model/p/m"]);
    let budgets = held.engagement.unwrap().budgets;
    assert_eq!(budgets[4].model.as_deref(), Some("p/m"));
    let nobodys = at.held(None).await;
    assert_eq!(names(&nobodys), ["agent/a", "fleet", "model/p/m"]);
}

async fn a_new_day_has_a_new_allowance(at: &Opened) {
    at.rule("fleet", |rule| rule.tokens_per_day = Some(50)).await;
    let held = at.held(None).await;
    at.write(&held.lease, reserve(50, None, &["fleet"])).await.unwrap();
    // The call began yesterday, so yesterday's row is charged.
    let tomorrow = Timestamp(DAY + 5);
    at.write_at(&held.lease, book(50, 40, 0), tomorrow).await.unwrap();
    assert_eq!(at.row("fleet", Some(0)).await, (40, 0, 0, 0));
    at.write_at(&held.lease, reserve(50, None, &["fleet"]), tomorrow).await.unwrap();
    assert_eq!(at.row("fleet", Some(1)).await, (0, 50, 0, 0));
    let other = at.held(None).await;
    let refused = at.write(&other.lease, reserve(11, None, &["fleet"])).await.unwrap_err();
    let LedgerError::BudgetExceeded { left: 10, of, .. } = refused else { panic!("{refused}") };
    assert_eq!(of.resets_at, Some(end_of(0)));
}

async fn money_is_bounded_in_the_engagement_and_in_shared_budgets(at: &Opened) {
    at.rule("tenant/acme", |rule| rule.cost_per_day = Some(1_000)).await;
    let mut job = of_tenant("acme");
    if let Some(engagement) = &mut job.engagement {
        engagement.agent.spending.cost_budget = Some(600);
    }
    let held = at.held_of(job).await;
    let refused = at.write(&held.lease, reserve(10, Some(601), &["tenant/acme"])).await.unwrap_err();
    let LedgerError::BudgetExceeded { left: 600, needed: 601, of } = refused else { panic!("{refused}") };
    assert_eq!((of.name, of.measure), (None, Measure::Money));
    at.write(&held.lease, reserve(10, Some(600), &["tenant/acme"])).await.unwrap();
    assert_eq!(at.row("tenant/acme", Some(0)).await, (0, 10, 0, 600));
    at.write(&held.lease, book(10, 7, 450)).await.unwrap();
    assert_eq!(at.row("tenant/acme", Some(0)).await, (7, 0, 450, 0));
    let own = at.store.views.budget(&engagement(&held)).await.unwrap();
    assert_eq!((own.settled, own.money.settled, own.money.reserved), (7, 450, 0));
    at.write(&held.lease, book(0, 0, 200)).await.unwrap();
    let own = at.store.views.budget(&engagement(&held)).await.unwrap();
    assert_eq!((own.money.settled, own.money.left()), (650, Some(0)), "what was spent is booked");
}

async fn without_a_price_no_budget_in_money_lets_a_call_through(at: &Opened) {
    at.rule("fleet", |rule| rule.cost = Some(1_000)).await;
    let held = at.held(None).await;
    let refused = at.write(&held.lease, reserve(10, None, &["fleet"])).await.unwrap_err();
    assert!(
        matches!(&refused, LedgerError::Unpriced { budget, currency: None } if budget == "fleet"),
        "{refused}"
    );
    let euros = Charge { currency: "EUR".into(), ..charge(Some(1), &["fleet"]) };
    let write = TurnWrite {
        budget: Some(BudgetMove::Reserve { tokens: 1 }),
        charge: Some(Box::new(ChargeMove::Reserve(euros))),
        ..TurnWrite::default()
    };
    let refused = at.write(&held.lease, write).await.unwrap_err();
    assert!(matches!(refused, LedgerError::Unpriced { currency: Some(_), .. }), "{refused}");
    let own = OwnBudget { cost: Some(Some(5)), ..OwnBudget::default() };
    at.budgets().set_own(&engagement(&held), None, own, NOW).await.unwrap().unwrap();
    let plain = TurnWrite { budget: Some(BudgetMove::Reserve { tokens: 1 }), ..TurnWrite::default() };
    let refused = at.write(&held.lease, plain).await.unwrap_err();
    assert!(matches!(&refused, LedgerError::Unpriced { budget, .. } if budget == "engagement"), "{refused}");
    at.nothing_is_reserved().await;
}

async fn a_crash_leaves_no_reservation_behind(at: &Opened) {
    at.rule("tenant/acme", |rule| rule.cost_per_day = Some(1_000)).await;
    let held = at.held_of(of_tenant("acme")).await;
    at.write(&held.lease, reserve(10, Some(900), &["tenant/acme"])).await.unwrap();
    assert_eq!(at.perform(Duty::ReapExpired, LAPSED).await, 1);
    at.nothing_is_reserved().await;
    let late = at.write(&held.lease, book(10, 10, 900)).await.unwrap_err();
    assert!(matches!(late, LedgerError::LeaseLost(_)));
    let again = at.claim(JobKind::Agent, 1).await.remove(0);
    at.write(&again.lease, reserve(10, Some(1_000), &["tenant/acme"])).await.unwrap();
    at.store.intake.cancel(&again.job, NOW).await.unwrap();
    at.nothing_is_reserved().await;
}

async fn a_reservation_replaces_the_earlier_one(at: &Opened) {
    at.rule("model/p/dear", |rule| rule.cost = Some(1_000)).await;
    at.rule("fleet", |rule| rule.cost = Some(1_000)).await;
    let held = at.held(Some(100)).await;
    at.write(&held.lease, reserve(90, Some(1_000), &["fleet", "model/p/dear"])).await.unwrap();
    at.write(&held.lease, reserve(100, Some(400), &["fleet"])).await.unwrap();
    assert_eq!(at.row("fleet", None).await, (0, 100, 0, 400));
    assert_eq!(at.row("model/p/dear", None).await, (0, 0, 0, 0));
    at.is_sound(&BTreeMap::new()).await;
    let refused = at.write(&held.lease, reserve(101, Some(1), &["fleet"])).await.unwrap_err();
    assert!(matches!(refused, LedgerError::BudgetExceeded { left: 100, needed: 101, .. }), "{refused}");
    assert_eq!(at.row("fleet", None).await, (0, 100, 0, 400), "a refusal leaves the earlier reservation");
}

async fn a_tool_call_is_paid_for_at_once(at: &Opened) {
    at.rule("fleet", |rule| rule.cost = Some(1_000)).await;
    let held = at.held(None).await;
    let spend = |money| TurnWrite {
        charge: Some(Box::new(ChargeMove::Spend {
            charge: charge(Some(money), &["fleet"]),
            calls: vec![(CallId("c".into()), money)],
        })),
        tool_calls: vec![turnstone_domain::tool_call::ToolCallMove::Intend {
            call_id: CallId("c".into()),
            turn: 1,
            position: 0,
            name: "search".into(),
            input: serde_json::json!({}),
            idempotent: true,
            sent: true,
        }],
        ..TurnWrite::default()
    };
    let refused = at.write(&held.lease, spend(1_001)).await.unwrap_err();
    assert!(matches!(refused, LedgerError::BudgetExceeded { left: 1_000, needed: 1_001, .. }), "{refused}");
    at.write(&held.lease, spend(400)).await.unwrap();
    assert_eq!(at.row("fleet", None).await, (0, 0, 400, 0));
    assert_eq!(at.job(&held.job).await.agent.unwrap().cost, 400);
    let cost = at.budgets().cost_of(&engagement(&held)).await.unwrap();
    assert_eq!((cost.tools[0].1.as_str(), cost.tools[0].2.cost), ("search", 400));
    // A call with reserved tokens to an agent on another server is charged, too.
    at.write(&held.lease, reserve(50, Some(300), &["fleet"])).await.unwrap();
    let calls = vec![(CallId("c".into()), 300)];
    let settle = ChargeMove::Settle { money: 300, calls };
    at.write(&held.lease, TurnWrite { charge: Some(Box::new(settle)), ..book(50, 20, 0) }).await.unwrap();
    assert_eq!(at.row("fleet", None).await, (20, 0, 700, 0));
    let cost = at.budgets().cost_of(&engagement(&held)).await.unwrap();
    assert_eq!(cost.tools[0].2.cost, 700);
}

#[expect(clippy::cognitive_complexity, reason = "one story in order")]
async fn a_raise_resumes_parked_and_retryable_jobs(at: &Opened) {
    at.rule("tenant/acme", |rule| rule.tokens = Some(10)).await;
    let parked = at.held_of(of_tenant("acme")).await;
    at.write(&parked.lease, reserve(11, None, &["tenant/acme"])).await.unwrap_err();
    at.settle(&parked.lease, park(Some("tenant/acme"), None)).await;
    let retryable = at.held_of(of_tenant("acme")).await;
    let error = exceeded(None, Some("tenant/acme"));
    let run_at = Timestamp(NOW.0 + 1_000_000);
    at.settle(&retryable.lease, Settlement::Retry { error, run_at, delay_ms: 1 }).await;
    let own = at.held(Some(5)).await;
    at.settle(&own.lease, park(None, None)).await;
    assert_eq!(at.state(&parked.job).await, JobState::Pending);
    let listed = at.budgets().list(None, None, Timestamp(0)).await.unwrap();
    assert_eq!(listed[0].rows[0].waiting, 2);
    assert_eq!(at.budgets().raise("tenant/none", None, Raise::default(), NOW).await.unwrap(), None);
    let by = Raise { tokens: 90, ..Raise::default() };
    let raised = at.budgets().raise("tenant/acme", None, by, NOW).await.unwrap().unwrap();
    assert_eq!(raised.tokens, Some(100));
    for job in [&parked.job, &retryable.job] {
        assert_eq!(at.state(job).await, JobState::Available, "{job}");
    }
    assert_eq!(at.state(&own.job).await, JobState::Pending, "its own budget was not raised");
    let change = OwnBudget { tokens: Some(Some(50)), ..OwnBudget::default() };
    let budget = at.budgets().set_own(&engagement(&own), None, change, NOW).await.unwrap().unwrap();
    assert_eq!(budget.limit, Some(50));
    assert_eq!(at.state(&own.job).await, JobState::Available);
    assert_eq!(at.query("SELECT count(*) FROM budget_waits").await, 0);
}

async fn a_delegate_that_parks_sees_a_raise_after_its_refusal(at: &Opened) {
    let root = at.held(Some(10)).await;
    let mut works_for = agent(None);
    works_for.terms.works_for = Some(root.job.clone());
    let child = at.held_of(works_for).await;
    at.write(&child.lease, reserve(11, None, &[])).await.unwrap_err();
    let change = OwnBudget { tokens: Some(Some(50)), ..OwnBudget::default() };
    at.budgets().set_own(&engagement(&root), None, change, NOW).await.unwrap().unwrap();
    let wait = BudgetWait {
        name: None,
        resets_at: None,
        measure: Measure::Tokens,
        needed: Some(11),
        least: None,
        until: None,
    };
    at.settle(&child.lease, Settlement::Park { wait: Wait::Raise(wait) }).await;
    assert_eq!(at.state(&child.job).await, JobState::Pending);
    let soon = NOW.plus_ms(5_000);
    assert_eq!(at.store.upkeep.next_due().await.unwrap().map(|due| due <= soon), Some(true));
    at.perform(Duty::PromoteDue, soon).await;
    assert_eq!(at.state(&child.job).await, JobState::Available, "the raise came before it parked");
}

async fn a_job_that_parks_for_a_deleted_budget_resumes(at: &Opened) {
    at.rule("fleet", |rule| rule.tokens = Some(1)).await;
    let held = at.held(None).await;
    at.write(&held.lease, reserve(2, None, &["fleet"])).await.unwrap_err();
    assert!(at.budgets().forget("fleet", None, NOW).await.unwrap());
    let wait = BudgetWait {
        name: Some("fleet".into()),
        resets_at: None,
        measure: Measure::Tokens,
        needed: Some(2),
        least: None,
        until: None,
    };
    at.settle(&held.lease, Settlement::Park { wait: Wait::Raise(wait) }).await;
    at.perform(Duty::PromoteDue, NOW.plus_ms(5_000)).await;
    assert_eq!(at.state(&held.job).await, JobState::Available);
}

async fn a_job_parked_for_a_daily_budget_resumes_the_next_day(at: &Opened) {
    at.rule("fleet", |rule| rule.tokens_per_day = Some(1)).await;
    let held = at.held(None).await;
    at.write(&held.lease, reserve(2, None, &["fleet"])).await.unwrap_err();
    at.settle(&held.lease, park(Some("fleet"), Some(end_of(0)))).await;
    assert_eq!(at.perform(Duty::PromoteDue, Timestamp(DAY - 1)).await, 0);
    assert_eq!(at.store.upkeep.next_due().await.unwrap(), Some(Timestamp(DAY)));
    assert_eq!(at.perform(Duty::PromoteDue, Timestamp(DAY)).await, 1);
    assert_eq!(at.state(&held.job).await, JobState::Available);
}

async fn a_job_that_was_claimed_since_waits_for_nothing(at: &Opened) {
    at.rule("fleet", |rule| rule.tokens = Some(1)).await;
    let held = at.held(None).await;
    at.write(&held.lease, reserve(2, None, &["fleet"])).await.unwrap_err();
    let error = exceeded(None, Some("fleet"));
    at.settle(&held.lease, Settlement::Retry { error, run_at: NOW, delay_ms: 0 }).await;
    let again = at.claim(JobKind::Agent, 1).await.remove(0);
    at.settle(&again.lease, super::jobs::retry(Timestamp(NOW.0 + 60_000))).await;
    let by = Raise { tokens: 1, ..Raise::default() };
    at.budgets().raise("fleet", None, by, NOW).await.unwrap().unwrap();
    assert_eq!(at.state(&held.job).await, JobState::Retryable, "it failed for another reason since");
    assert_eq!(at.query("SELECT count(*) FROM budget_waits").await, 0);
}

async fn a_warning_is_given_once_per_budget(at: &Opened) {
    at.rule("fleet", |rule| {
        rule.tokens = Some(1_000);
        rule.cost = Some(1_000);
        rule.warn_at = Some(50);
    })
    .await;
    let held = at.held(Some(1_000)).await;
    for (used, money, warnings) in [(400, 400, 0), (100, 99, 1), (300, 1, 3), (100, 100, 3)] {
        at.write(&held.lease, reserve(used, Some(money), &["fleet"])).await.unwrap();
        at.write(&held.lease, book(used, used, money)).await.unwrap();
        assert_eq!(at.count(&held.job, EventName::BudgetWarning).await, warnings, "after {used} more");
    }
}

async fn a_limit_below_the_spent_amount_refuses_every_call(at: &Opened) {
    at.rule("fleet", |rule| rule.tokens = Some(100)).await;
    let held = at.held(None).await;
    at.write(&held.lease, reserve(60, None, &["fleet"])).await.unwrap();
    at.write(&held.lease, book(60, 60, 0)).await.unwrap();
    at.rule("fleet", |rule| rule.tokens = Some(10)).await;
    let refused = at.write(&held.lease, reserve(1, None, &["fleet"])).await.unwrap_err();
    assert!(matches!(refused, LedgerError::BudgetExceeded { left: 0, needed: 1, .. }), "{refused}");
    assert!(at.budgets().forget("fleet", None, NOW).await.unwrap());
    at.write(&held.lease, reserve(1_000, None, &["fleet"])).await.unwrap();
    at.settle(&held.lease, complete()).await;
    at.nothing_is_reserved().await;
}

async fn what_a_call_used_above_its_reservation_is_booked_and_nothing_starts_after_it(at: &Opened) {
    at.rule("fleet", |rule| (rule.tokens, rule.cost) = (Some(200), Some(20))).await;
    let held = at.held(Some(100)).await;
    at.write(&held.lease, reserve(60, Some(6), &["fleet"])).await.unwrap();
    at.write(&held.lease, book(60, 150, 25)).await.unwrap();
    let own = at.store.views.budget(&engagement(&held)).await.unwrap();
    assert_eq!((own.settled, own.left(), own.money.settled), (150, Some(0), 25), "50 above the limit");
    assert_eq!(at.row("fleet", None).await, (150, 0, 25, 0));
    let left = |refused: LedgerError| match refused {
        LedgerError::BudgetExceeded { left, of, .. } => (left, of.name.clone(), of.measure),
        other => panic!("{other}"),
    };
    let refused = at.write(&held.lease, reserve(1, Some(0), &["fleet"])).await.unwrap_err();
    assert_eq!(left(refused), (0, None, Measure::Tokens));
    let other = at.held(None).await;
    let refused = at.write(&other.lease, reserve(1, Some(1), &["fleet"])).await.unwrap_err();
    assert_eq!(left(refused), (0, Some("fleet".to_owned()), Measure::Money));
    let refused = at.write(&other.lease, reserve(51, Some(0), &["fleet"])).await.unwrap_err();
    assert_eq!(left(refused), (50, Some("fleet".to_owned()), Measure::Tokens));
    // A raise that still is below what is spent lets nothing start either.
    let change = OwnBudget { tokens: Some(Some(149)), ..OwnBudget::default() };
    at.budgets().set_own(&engagement(&held), None, change, NOW).await.unwrap().unwrap();
    assert_eq!(left(at.write(&held.lease, reserve(1, Some(0), &[])).await.unwrap_err()).0, 0);
    let change = OwnBudget { tokens: Some(Some(151)), ..OwnBudget::default() };
    at.budgets().set_own(&engagement(&held), None, change, NOW).await.unwrap().unwrap();
    assert_eq!(left(at.write(&held.lease, reserve(2, Some(0), &[])).await.unwrap_err()).0, 1);
    at.write(&held.lease, reserve(1, Some(0), &[])).await.unwrap();
}

async fn a_reservation_in_an_overspent_budget_is_replaced_within_what_is_left(at: &Opened) {
    at.rule("fleet", |rule| (rule.tokens, rule.cost) = (Some(100), Some(100))).await;
    let (held, other) = (at.held(None).await, at.held(None).await);
    at.write(&held.lease, reserve(60, Some(60), &["fleet"])).await.unwrap();
    at.write(&other.lease, reserve(40, Some(40), &["fleet"])).await.unwrap();
    at.write(&other.lease, book(40, 90, 90)).await.unwrap();
    assert_eq!(at.row("fleet", None).await, (90, 60, 90, 60));
    for (tokens, money, measure) in
        [(60, 0, Measure::Tokens), (0, 60, Measure::Money), (11, 0, Measure::Tokens)]
    {
        let refused = at.write(&held.lease, reserve(tokens, Some(money), &["fleet"])).await.unwrap_err();
        let LedgerError::BudgetExceeded { left, of, .. } = refused else { panic!("{refused}") };
        assert_eq!((left, of.measure), (10, measure), "its own 60 are no room beyond the limit");
    }
    at.write(&held.lease, reserve(10, Some(10), &["fleet"])).await.unwrap();
    assert_eq!(at.row("fleet", None).await, (90, 10, 90, 10));
    let own = at.held(Some(100)).await;
    at.write(&own.lease, reserve(60, None, &[])).await.unwrap();
    let change = OwnBudget { tokens: Some(Some(50)), ..OwnBudget::default() };
    at.budgets().set_own(&engagement(&own), None, change, NOW).await.unwrap().unwrap();
    let refused = at.write(&own.lease, reserve(60, None, &[])).await.unwrap_err();
    assert!(matches!(refused, LedgerError::BudgetExceeded { left: 50, needed: 60, .. }), "{refused}");
}

async fn tenants_see_and_raise_their_own_budgets_only(at: &Opened) {
    for name in ["fleet", "tenant/acme", "tenant/acme/model/p/m", "tenant/other"] {
        at.rule(name, |rule| rule.tokens = Some(1)).await;
    }
    let seen = at.budgets().list(None, Some("acme"), Timestamp(0)).await.unwrap();
    let seen: Vec<String> = seen.iter().map(|budget| budget.rule.name.to_string()).collect();
    assert_eq!(seen, ["tenant/acme", "tenant/acme/model/p/m"]);
    for name in ["fleet", "tenant/other"] {
        assert_eq!(at.budgets().raise(name, Some("acme"), Raise::default(), NOW).await.unwrap(), None);
        assert!(!at.budgets().forget(name, Some("acme"), NOW).await.unwrap());
    }
    let held = at.held_of(of_tenant("other")).await;
    let change = OwnBudget { tokens: Some(None), ..OwnBudget::default() };
    assert_eq!(at.budgets().set_own(&engagement(&held), Some("acme"), change, NOW).await.unwrap(), None);
    assert!(at.budgets().set_own(&engagement(&held), Some("other"), change, NOW).await.unwrap().is_some());
}

async fn a_repeated_raise_changes_nothing(at: &Opened) {
    let given = |tokens| rule("fleet", |rule| rule.tokens = Some(tokens));
    assert!(at.budgets().set(given(10), Some("a".into()), NOW).await.unwrap());
    let by = Raise { tokens: 5, ..Raise::default() };
    at.budgets().raise("fleet", None, by, NOW).await.unwrap().unwrap();
    assert!(
        !at.budgets().set(given(10), Some("a".into()), NOW).await.unwrap(),
        "a restart takes no raise back"
    );
    assert_eq!(at.budgets().list(None, None, NOW).await.unwrap()[0].rule.tokens, Some(15));
    assert!(at.budgets().set(given(20), Some("b".into()), NOW).await.unwrap());
    assert_eq!(at.budgets().list(None, None, NOW).await.unwrap()[0].rule.tokens, Some(20));
}

async fn a_call_is_reserved_without_a_limit_too(at: &Opened) {
    let held = at.held(Some(100)).await;
    at.write(&held.lease, reserve(60, Some(5), &[])).await.unwrap();
    assert_eq!(at.query("SELECT count(*) FROM reservations").await, 1, "a limit may be set during the call");
    at.write(&held.lease, book(60, 60, 5)).await.unwrap();
    assert_eq!(at.query("SELECT count(*) FROM reservations").await, 0);
    let own = at.store.views.budget(&engagement(&held)).await.unwrap();
    assert_eq!(
        (own.settled, own.money.settled, own.money.limit),
        (60, 5, None),
        "its cost is known nevertheless"
    );
    assert_eq!(at.state(&held.job).await, JobState::Active);
    assert!(at.write(&held.lease, nothing()).await.is_ok());
}
