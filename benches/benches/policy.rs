//! Assertions: how long one takes on a long history, what the first one costs, and a backtest of recorded engagements.

#![expect(clippy::expect_used, reason = "a bench that cannot continue has to stop")]

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use serde_json::json;
use std::hint::black_box;
use turnstone_benches::history::{agent, call, calls, engagement, object};
use turnstone_domain::policy::Expression;
use turnstone_domain::policy::backtest::Backtest;

/// Calls that the engagement has made before.
const HISTORIES: &[usize] = &[10, 1000, 10_000];
/// Engagements that are rehearsed, and the calls of each.
const REHEARSED: (usize, usize) = (1000, 20);

/// Typical assertions: about the pending arguments, a past call, the number of calls, and every name in a loop.
const ASSERTIONS: [(&str, &str); 4] = [
    ("pending", "recent['book'].inputs.price <= 800"),
    ("past", "history['search'][0].outputs.hits > 0 && history._total < 100000"),
    ("counts", "size(history['book']) < 100000 && user.id != 'nobody'"),
    ("loop", "history._list.all(name, name != 'delete')"),
];

fn names(agent: &turnstone_domain::AgentDefinition) -> Vec<&str> {
    agent.capabilities.iter().map(|capability| capability.name.as_str()).collect()
}

/// One evaluation, as before each call of a worker: the history is there already.
fn assertion(criterion: &mut Criterion) {
    let agent = agent();
    let mut group = criterion.benchmark_group("assertion");
    group.throughput(Throughput::Elements(1));
    for history in HISTORIES {
        let object = object(&agent, *history);
        let inputs = json!({"price": 640});
        for (what, source) in ASSERTIONS {
            let expression = Expression::compile(source, &names(&agent)).expect("an assertion");
            group.bench_function(BenchmarkId::new(what, history), |bencher| {
                bencher.iter(|| {
                    expression.assert(black_box(&object.with_pending("book", &inputs))).expect("it holds")
                });
            });
        }
    }
}

/// The first evaluation after a worker has taken over: what the expression reads of the history is read into it.
fn context(criterion: &mut Criterion) {
    let agent = agent();
    let mut group = criterion.benchmark_group("context");
    for history in HISTORIES {
        let object = object(&agent, *history);
        let (_, source) = ASSERTIONS[1];
        let expression = Expression::compile(source, &names(&agent)).expect("an assertion");
        group.throughput(Throughput::Elements(*history as u64));
        group.bench_function(BenchmarkId::new("first assertion", history), |bencher| {
            // A clone has read nothing yet.
            bencher.iter_batched_ref(
                || object.clone(),
                |object| expression.assert(&object.view()).expect("it holds"),
                BatchSize::LargeInput,
            );
        });
        group.bench_function(BenchmarkId::new("one more call", history), |bencher| {
            let (mut object, made) = (object.clone(), call(0));
            bencher.iter(|| {
                let outputs = made.outputs.clone().unwrap_or_default();
                expression.assert(&object.with_made(&made.name, &made.inputs, &outputs)).expect("it holds");
                object.record(&made.name, made.inputs.clone(), outputs);
            });
        });
    }
}

/// Measures the evaluation of `turnstone policy test`.
fn backtest(criterion: &mut Criterion) {
    let agent = agent();
    let (engagements, each) = REHEARSED;
    let recorded: Vec<_> = (0..engagements).map(|_| calls(each)).collect();
    let mut group = criterion.benchmark_group("backtest");
    group.throughput(Throughput::Elements(engagements as u64));
    group.bench_function(BenchmarkId::new("engagements", engagements), |bencher| {
        bencher.iter(|| {
            let backtest = Backtest::of(&agent);
            let found = recorded.iter().map(|calls| backtest.over(&engagement(), calls).assertions);
            assert_eq!(found.sum::<usize>(), engagements * each);
        });
    });
}

criterion_group! {
    name = policy;
    config = Criterion::default().sample_size(20);
    targets = assertion, context, backtest
}
criterion_main!(policy);
