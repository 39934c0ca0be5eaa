//! Single calls of the embedded store, each with its commit: push, claim, checkpoint, settle.
//!
//! One call after another, and many at once, which share a commit.

#![expect(clippy::expect_used, reason = "a bench that cannot continue has to stop")]

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use futures::future::join_all;
use std::sync::atomic::{AtomicI64, Ordering};
use turnstone_benches::jobs::several;
use turnstone_benches::{Ground, LEASE_MS, phase, request};
use turnstone_domain::{Clock as _, Settlement, SystemClock, TurnWrite};
use turnstone_store::{Claim, JobKind};

/// How many calls there are at once.
const AT_ONCE: &[usize] = &[1, 64];

fn push(criterion: &mut Criterion) {
    let ground = Ground::open().expect("a store");
    let mut group = criterion.benchmark_group("push");
    for (kind, count) in
        [(JobKind::Plain, 1), (JobKind::Plain, 100), (JobKind::Agent, 1), (JobKind::Agent, 100)]
    {
        group.throughput(Throughput::Elements(count as u64));
        group.bench_function(BenchmarkId::new(kind.as_str(), count), |bencher| {
            bencher.iter_batched(
                || several(kind, count),
                |jobs| ground.runtime.block_on(ground.store.intake.push(jobs)).expect("accepted"),
                BatchSize::PerIteration,
            );
        });
    }
}

fn claim(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("claim");
    for count in [1, 100] {
        let ground = Ground::open().expect("a store");
        group.throughput(Throughput::Elements(count as u64));
        group.bench_function(BenchmarkId::new("agent", count), |bencher| {
            bencher.iter_batched(
                || {
                    ground
                        .runtime
                        .block_on(ground.store.intake.push(several(JobKind::Agent, count)))
                        .expect("accepted")
                },
                |_| {
                    let claims = ground.store.ledger.claim(request(JobKind::Agent, count));
                    let claims = ground.runtime.block_on(claims).expect("claimed");
                    assert_eq!(claims.len(), count);
                },
                BatchSize::PerIteration,
            );
        });
    }
}

fn checkpoint(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("checkpoint");
    for count in AT_ONCE {
        let ground = Ground::open().expect("a store");
        let claims = ground.claimed(JobKind::Agent, *count).expect("claimed");
        let turn = AtomicI64::new(0);
        group.throughput(Throughput::Elements(*count as u64));
        group.bench_function(BenchmarkId::new("at once", count), |bencher| {
            bencher.iter(|| {
                let (turn, now) = (turn.fetch_add(1, Ordering::Relaxed), SystemClock.now());
                let all = claims
                    .iter()
                    .map(|claim| ground.store.ledger.checkpoint(&claim.lease, phase(turn), now, LEASE_MS));
                for written in ground.runtime.block_on(join_all(all)) {
                    written.expect("written");
                }
            });
        });
    }
}

fn settle(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("settle");
    for count in AT_ONCE {
        let ground = Ground::open().expect("a store");
        group.throughput(Throughput::Elements(*count as u64));
        group.bench_function(BenchmarkId::new("at once", count), |bencher| {
            bencher.iter_batched(
                || ground.claimed(JobKind::Plain, *count).expect("claimed"),
                |claims: Vec<Claim>| {
                    let all = claims.iter().map(|claim| {
                        let done = Settlement::Complete { result: "done".into(), withheld: false };
                        ground.store.ledger.settle(
                            &claim.lease,
                            TurnWrite::default(),
                            done,
                            SystemClock.now(),
                        )
                    });
                    for settled in ground.runtime.block_on(join_all(all)) {
                        settled.expect("settled");
                    }
                },
                BatchSize::PerIteration,
            );
        });
    }
}

criterion_group! {
    name = store;
    config = Criterion::default().sample_size(20);
    targets = push, claim, checkpoint, settle
}
criterion_main!(store);
