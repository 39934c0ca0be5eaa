//! The ledger of the crash tests cuts a write into parts that together are the write.

use serde_json::{Value, json};
use turnstone_domain::agent::guardrails::Side;
use turnstone_domain::budget::{BudgetMove, Charge, ChargeMove};
use turnstone_domain::guardrail_check::{Asked, GuardrailCheck};
use turnstone_domain::memory::Remember;
use turnstone_domain::message::{Message, Role};
use turnstone_domain::tool_call::{ToolCallMove, ToolOutcome};
use turnstone_domain::turn_write::Position;
use turnstone_domain::{
    CallId, EventName, NewCheckpoint, NewEvent, Phase, RawJson, Spent, Timestamp, TurnWrite,
};
use turnstone_tests::crash::cut;

const PHASES: [(i64, Phase); 5] =
    [(1, Phase::Exec), (1, Phase::Emit), (2, Phase::Init), (2, Phase::Norm), (2, Phase::Resol)];

fn done((turn, phase): (i64, Phase)) -> NewCheckpoint {
    let (body, at, spent) = (RawJson::null(), Timestamp(0), Spent::default());
    NewCheckpoint { turn, phase, version: 1, body, duration_ms: 0, tokens_in: 0, tokens_out: 0, at, spent }
}

fn event(turn: i64, name: EventName, data: Value) -> NewEvent {
    NewEvent { name, turn, data: data.into(), at: Timestamp(0) }
}

fn checked(side: Side) -> GuardrailCheck {
    let call_id = CallId(side.as_str().to_owned());
    let (tool, asked, at) = ("search".to_owned(), Asked::default(), Timestamp(0));
    GuardrailCheck { call_id, turn: 2, side, tool, passed: true, asked, at }
}

fn reserved() -> Charge {
    Charge { what: "model p/m".to_owned(), money: Some(1), currency: "USD".to_owned(), budgets: Vec::new() }
}

fn settled() -> ToolCallMove {
    let outcome = ToolOutcome::Success { output: Value::Null };
    let call_id = CallId("a".to_owned());
    ToolCallMove::Settle { call_id, outcome, handled: None, duration_ms: 0, withheld: false }
}

/// The write before the model call, with the end of the turn before it.
fn write() -> TurnWrite {
    let mut events = Vec::new();
    for (turn, phase) in PHASES {
        match (turn, phase) {
            (1, Phase::Exec) => events.push(event(1, EventName::ToolCompleted, json!({}))),
            (2, Phase::Norm) => {
                events.push(event(2, EventName::GuardrailChecked, json!({"on_record": true})));
                events.push(event(2, EventName::GuardrailChecked, json!({})));
            }
            _ => {}
        }
        events.push(event(turn, EventName::PhaseCompleted, json!({"phase": phase})));
    }
    TurnWrite {
        checkpoints: PHASES.map(done).to_vec(),
        messages: vec![
            (1, Message::text(Role::Tool, "outcome")),
            (2, Message::text(Role::Assistant, "sent by the client")),
            (2, Message::text(Role::User, "go")),
            (2, Message::text(Role::System, "made again")),
        ],
        tool_calls: vec![settled(), ToolCallMove::Send { call_id: CallId("b".to_owned()) }],
        checks: vec![checked(Side::Input), checked(Side::Output)],
        events,
        budget: Some(BudgetMove::Reserve { tokens: 1 }),
        charge: Some(Box::new(ChargeMove::Reserve(reserved()))),
        position: Some(Position { turn: 2, ..Position::default() }),
        remember: Some(Remember { began: 1, ended: 2, rules: String::new() }),
        ..TurnWrite::default()
    }
}

#[test]
fn each_part_has_one_checkpoint_and_what_belongs_to_it() {
    let parts = cut(write());
    let phases: Vec<_> =
        parts.iter().map(|part| (part.checkpoints[0].turn, part.checkpoints[0].phase)).collect();
    assert_eq!(phases, PHASES);
    let [exec, emit, init, norm, resol] = parts.as_slice() else { panic!("{parts:#?}") };
    assert_eq!(exec.tool_calls, [settled()]);
    assert_eq!((exec.events.len(), exec.messages.len()), (2, 1));
    assert!(emit.position.is_some());
    assert_eq!((init.events.len(), init.messages.len()), (1, 0));
    assert_eq!((norm.checks.as_slice(), norm.messages.len()), ([checked(Side::Input)].as_slice(), 2));
    assert_eq!(resol.checks, [checked(Side::Output)], "a phase that is not complete has asked");
    assert_eq!((resol.tool_calls.len(), resol.messages.len()), (1, 1), "a call leaves after the write");
    assert!(resol.budget.is_some() && resol.charge.is_some() && resol.remember.is_some());
}

#[test]
fn the_parts_are_the_write() {
    let mut whole = TurnWrite::default();
    for part in cut(write()) {
        whole.checkpoints.extend(part.checkpoints);
        whole.messages.extend(part.messages);
        whole.tool_calls.extend(part.tool_calls);
        whole.checks.extend(part.checks);
        whole.events.extend(part.events);
        whole.budget = whole.budget.or(part.budget);
        whole.charge = whole.charge.or(part.charge);
        whole.position = whole.position.or(part.position);
        whole.remember = whole.remember.or(part.remember);
    }
    assert_eq!(whole, write());
}

#[test]
fn what_is_booked_goes_with_the_answer() {
    let booked = TurnWrite {
        checkpoints: [(1, Phase::Infer), (1, Phase::Exec), (1, Phase::Persist)].map(done).to_vec(),
        budget: Some(BudgetMove::Settle { reserved: 2, used: 1 }),
        charge: Some(Box::new(ChargeMove::Settle { money: 1, calls: Vec::new() })),
        ..TurnWrite::default()
    };
    let parts = cut(booked);
    assert!(parts[0].budget.is_some() && parts[0].charge.is_some());
    assert!(parts[1..].iter().all(|part| part.budget.is_none() && part.charge.is_none()));
}
