//! The journal: the parts of a write are read back wherever a page begins or ends (`docs/adr/0007`).

use super::backend::Opened;
use super::jobs::{LAPSED, LEASE, NOW, agent, done, engagement};
use super::on_every_store;
use serde_json::{Value, json};
use turnstone_domain::feed::{Cursor, FeedFilter};
use turnstone_domain::message::{Message, Role};
use turnstone_domain::{
    Checkpoint, EventData, EventName, JobState, NewCheckpoint, NewEvent, Phase, PhaseCompleted, RawJson,
    Spent, Timestamp, TurnWrite,
};
use turnstone_store::{Claim, EventFilter, JobKind, Page, Spending};

on_every_store![
    a_write_over_two_turns_is_read_in_parts,
    costs_are_those_of_each_model,
    a_damaged_row_does_not_block_other_jobs,
];

fn at(ms: i64) -> Timestamp {
    NOW.plus_ms(ms)
}

fn checkpoint(turn: i64, phase: Phase, ms: i64) -> NewCheckpoint {
    NewCheckpoint {
        turn,
        phase,
        version: 1,
        body: RawJson::of(&json!({"of": phase, "turn": turn})),
        duration_ms: ms,
        tokens_in: 0,
        tokens_out: 0,
        at: at(ms),
        spent: Spent::default(),
    }
}

fn paid(turn: i64, phase: Phase, model: &str, cost: i64) -> NewCheckpoint {
    let spent = Spent { tokens_cached: 1, cost, model: Some(model.to_owned()) };
    NewCheckpoint { tokens_in: 10 * cost, tokens_out: cost, spent, ..checkpoint(turn, phase, 2) }
}

fn event(turn: i64, name: EventName, data: Value, ms: i64) -> NewEvent {
    NewEvent { name, turn, data: data.into(), at: at(ms) }
}

/// Returns the event of a phase.
fn phase_event(done: &NewCheckpoint, more: Value) -> NewEvent {
    let (phase, duration_ms) = (done.phase, done.duration_ms);
    let data = EventData::Phase(PhaseCompleted { phase, duration_ms, more: RawJson::of(&more) });
    NewEvent { data, ..event(done.turn, EventName::PhaseCompleted, Value::Null, duration_ms) }
}

/// Returns the end of turn 1 and the beginning of turn 2. An unrelated event is in the middle of a phase, one event
/// contradicts its checkpoint, and one checkpoint has no event.
fn two_turns() -> TurnWrite {
    let requested = paid(1, Phase::Infer, "p/a", 7);
    let checkpoints = vec![
        requested.clone(),
        checkpoint(1, Phase::Exec, 3),
        paid(1, Phase::Persist, "p/b", 5),
        checkpoint(1, Phase::Emit, 4),
        checkpoint(2, Phase::Init, 5),
        checkpoint(2, Phase::Norm, 6),
        paid(2, Phase::Resol, "p/a", 1),
    ];
    let events = vec![
        phase_event(&requested, json!({"model": "a", "cost": 7, "z": null, "budget_left": {"b": 1, "a": 2}})),
        event(1, EventName::ToolCalled, json!({"call_id": "c"}), 2),
        event(1, EventName::PhaseCompleted, json!({"duration_ms": 3, "phase": "exec"}), 9),
        phase_event(&checkpoints[2], json!({})),
        phase_event(&checkpoints[3], json!({"tool_calls": 1})),
        phase_event(&checkpoints[4], json!({})),
        phase_event(&checkpoints[6], json!({"model": "a"})),
        event(2, EventName::ModelFailed, json!({"model": "b"}), 8),
    ];
    let said = |turn, text: &str| (turn, Message::text(Role::User, text).into());
    let messages = vec![said(1, "one"), said(1, "two"), said(2, "three")];
    TurnWrite { checkpoints, events, messages, ..TurnWrite::default() }
}

async fn wrote(store: &Opened) -> (Claim, TurnWrite) {
    let held = store.held(None).await;
    let write = two_turns();
    store.store.ledger.checkpoint(&held.lease, write.clone(), NOW, LEASE).await.unwrap();
    (held, write)
}

async fn a_write_over_two_turns_is_read_in_parts(store: &Opened) {
    let (held, write) = wrote(store).await;
    let (id, views) = (engagement(&held), &store.store.views);
    let filter = EventFilter::Engagement(id.clone());
    let all = views.events_after(&filter, 0, 100).await.unwrap();
    let whole = |e: &NewEvent| NewEvent { data: EventData::Whole(e.data.whole().into_owned()), ..e.clone() };
    let new: Vec<NewEvent> = all[2..]
        .iter()
        .map(|e| NewEvent { name: e.name, turn: e.turn, data: e.data.clone().into(), at: e.at })
        .collect();
    assert_eq!(new, write.events.iter().map(whole).collect::<Vec<_>>(), "also the order of the fields");
    for limit in 1..4 {
        for after in 0..all.len() {
            let page = views.events_after(&filter, i64::try_from(after).unwrap(), limit).await.unwrap();
            let end = all.len().min(after + limit as usize);
            assert_eq!(page, all[after..end], "{limit} after {after}");
        }
    }
    let said = views.messages(&id, 0, 100).await.unwrap();
    let texts: Vec<(i64, i64, &str)> =
        said.iter().map(|stored| (stored.seq, stored.turn, stored.message.content.as_str())).collect();
    assert_eq!(texts, [(1, 1, "one"), (2, 1, "two"), (3, 2, "three")]);
    let listed = views.checkpoints(&id, Page { limit: 100, offset: 0 }).await.unwrap();
    let listed: Vec<Checkpoint> = listed.into_iter().map(|row| row.checkpoint).collect();
    let text = |body: Value| RawJson::of(&body);
    assert_eq!(listed.iter().cloned().map(|done| done.with(text)).collect::<Vec<_>>(), write.checkpoints);
    for limit in 1..4 {
        for first in 0..listed.len() {
            let offset = u32::try_from(first).unwrap();
            let page = views.checkpoints(&id, Page { limit, offset }).await.unwrap();
            let end = listed.len().min(first + limit as usize);
            let page: Vec<Checkpoint> = page.into_iter().map(|row| row.checkpoint).collect();
            assert_eq!(page, listed[first..end], "{limit} from {first}");
            let messages = views.messages(&id, i64::from(offset), limit).await.unwrap();
            assert_eq!(messages, said[said.len().min(first)..said.len().min(first + limit as usize)]);
        }
    }
    let persisted = views.checkpoints_of(&id, Phase::Persist, 9).await.unwrap();
    assert_eq!(persisted.into_iter().map(|row| row.checkpoint).collect::<Vec<_>>(), [listed[2].clone()]);
    let filter = FeedFilter::of_names(vec![EventName::PhaseCompleted]);
    let (mut cursor, mut fed) = (Cursor::START, Vec::new());
    loop {
        let page = store.store.feed.feed(&filter, cursor, 2).await.unwrap();
        assert!(page.events.len() <= 2);
        fed.extend(page.events.into_iter().map(|event| event.cursor.seq));
        cursor = page.cursor;
        if !page.has_more {
            break;
        }
    }
    let completed = all.iter().filter(|event| event.name == EventName::PhaseCompleted);
    assert_eq!(fed, completed.map(|event| event.seq).collect::<Vec<_>>());
}

async fn costs_are_those_of_each_model(store: &Opened) {
    let (held, _) = wrote(store).await;
    let daily = store.store.budgets.daily(None, Timestamp(0)).await.unwrap();
    let daily: Vec<(&str, i64, i64, i64)> = daily
        .iter()
        .map(|day| (day.model.as_str(), day.spent.runs, day.spent.tokens_in, day.spent.cost))
        .collect();
    assert_eq!(daily, [("p/a", 2, 80, 8), ("p/b", 1, 50, 5)]);
    let of = store.store.budgets.cost_of(&engagement(&held)).await.unwrap();
    let phases: Vec<(Phase, Spending)> =
        of.phases.into_iter().map(|(_, phase, spent)| (phase, spent)).collect();
    let spent = |duration_ms, cost| Spending {
        runs: 1,
        duration_ms,
        tokens_in: 10 * cost,
        tokens_cached: i64::from(cost > 0),
        tokens_out: cost,
        cost,
    };
    let expected = [
        (Phase::Init, spent(5, 0)),
        (Phase::Norm, spent(6, 0)),
        (Phase::Resol, spent(2, 1)),
        (Phase::Infer, spent(2, 7)),
        (Phase::Exec, spent(3, 0)),
        (Phase::Persist, spent(2, 5)),
        (Phase::Emit, spent(4, 0)),
    ];
    assert_eq!(phases, expected);
}

async fn a_damaged_row_does_not_block_other_jobs(store: &Opened) {
    let mut ids = Vec::new();
    for _ in 0..2 {
        ids.push(store.push(agent(None)).await);
    }
    for held in store.claim(JobKind::Agent, 2).await {
        store.store.ledger.checkpoint(&held.lease, done(Phase::Init), NOW, LEASE).await.unwrap();
    }
    let damage = "UPDATE journal SET body = '[{' WHERE phases > 0 AND job_seq = (SELECT min(seq) FROM jobs)";
    store.query(damage).await;
    store.store.upkeep.release_all(NOW).await.unwrap();
    let mut claimed = Vec::new();
    for _ in 0..3 {
        claimed.extend(store.claim_at(JobKind::Agent, 2, LAPSED).await.into_iter().map(|claim| claim.job));
    }
    assert_eq!(claimed, [ids[1].clone()]);
    let broken = store.job(&ids[0]).await;
    assert_eq!(broken.state, JobState::Discarded);
    let why = &broken.errors.last().unwrap().error.message;
    assert!(why.contains("cannot be read") && why.contains("column body of journal "), "{why}");
}
