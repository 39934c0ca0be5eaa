//! Concurrent grants: reservations never exceed what is left of any budget, whatever is booked meanwhile.

use super::backend::{Backend, open};
use super::budgets::{book, of_tenant, reserve};
use super::jobs::{LAPSED, LEASE, NOW};
use proptest::prelude::*;
use std::collections::BTreeMap;
use turnstone_store::{Claim, Duty, JobKind, LedgerError};

/// The next step of a turn: its job, its reservation, and the usage that the provider reports.
#[derive(Clone, Debug)]
struct Step {
    job: usize,
    tokens: i64,
    money: i64,
    percent: i64,
    end: u8,
}

fn step() -> impl Strategy<Value = Step> {
    (0_usize..6, 1_i64..400, 0_i64..400, 0_i64..=250, 0_u8..4)
        .prop_map(|(job, tokens, money, percent, end)| Step { job, tokens, money, percent, end })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    /// Two processes use four budgets for six jobs, concurrently and in any order, and some calls use more than was reserved
    /// for them. Nothing is granted beyond a limit, and nothing is reserved at the end.
    #[test]
    fn nothing_is_granted_beyond_a_limit(rounds in prop::collection::vec(prop::collection::vec(step(), 1..5), 1..8), sqlite in any::<bool>()) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        runtime.block_on(async move {
            let sqlite = sqlite || cfg!(no_postgres);
            let at = open(if sqlite { Backend::Sqlite } else { Backend::Postgres }).await;
            // A second process, on PostgreSQL.
            let other = if sqlite { None } else { Some(at.place.open().await) };
            at.rule("fleet", |rule| { rule.tokens = Some(900); rule.cost_per_day = Some(700); }).await;
            at.rule("tenant/t0", |rule| rule.tokens_per_day = Some(500)).await;
            at.rule("tenant/t1", |rule| { rule.cost = Some(400); rule.tokens_per_day = Some(600); }).await;
            let jobs = (0..6).map(|n| of_tenant(&format!("t{}", n % 2))).collect();
            at.store.intake.push(jobs).await.unwrap();
            let claims = at.claim(JobKind::Agent, 6).await;
            let mut reserved = [0_i64; 6];
            let mut bounded = [0_i64; 6];
            let mut above = BTreeMap::<String, (i64, i64)>::new();
            for round in &rounds {
                let mut seen = [false; 6];
                let round: Vec<&Step> = round.iter().filter(|step| !std::mem::replace(&mut seen[step.job], true)).collect();
                let writes = round.iter().map(|step| {
                    let ledger = match &other {
                        Some(other) if step.job % 3 == 1 => &other.ledger,
                        _ => &at.store.ledger,
                    };
                    let tenant = at_tenant(&claims[step.job]);
                    let write = if reserved[step.job] > 0 && step.end > 0 {
                        let used = reserved[step.job] * step.percent / 100;
                        book(reserved[step.job], used, bounded[step.job] * step.percent / 100)
                    } else {
                        reserve(step.tokens, Some(step.money), &["fleet", &tenant])
                    };
                    ledger.checkpoint(&claims[step.job].lease, write, NOW, LEASE)
                });
                let outcomes = futures::future::join_all(writes).await;
                for (step, outcome) in round.iter().zip(outcomes) {
                    let settles = reserved[step.job] > 0 && step.end > 0;
                    match outcome {
                        Ok(_) if settles => {
                            let beyond = |held: i64| (held * step.percent / 100 - held).max(0);
                            for name in ["fleet".to_owned(), at_tenant(&claims[step.job])] {
                                let (tokens, money) = above.entry(name).or_default();
                                *tokens += beyond(reserved[step.job]);
                                *money += beyond(bounded[step.job]);
                            }
                            (reserved[step.job], bounded[step.job]) = (0, 0);
                        }
                        Ok(_) => (reserved[step.job], bounded[step.job]) = (step.tokens, step.money),
                        Err(LedgerError::BudgetExceeded { left, needed, .. }) => assert!(left < needed && !settles),
                        Err(error) => panic!("{step:?}: {error}"),
                    }
                }
                at.is_sound(&above).await;
            }
            at.perform(Duty::ReapExpired, LAPSED).await;
            at.nothing_is_reserved().await;
        });
    }
}

/// Returns the name of the tenant's budget of a claim.
fn at_tenant(claim: &Claim) -> String {
    let budgets = &claim.engagement.as_ref().unwrap().budgets;
    budgets.iter().find(|budget| budget.name.starts_with("tenant/")).unwrap().name.clone()
}
