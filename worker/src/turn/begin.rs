//! Takes a claim, and reads from the store what its turn needs.

use super::handoff;
use crate::deps::Deps;
use crate::phases::exec;
use crate::policy::tool_rules;
use crate::state::claimed::{JobFacts, Reviewers};
use crate::state::conversation::Conversation;
use crate::state::past::Fork;
use crate::state::slot::TurnSlot;
use crate::state::trace::Trace;
use crate::state::{Bodies, Claimed, Outbox, Stop, Turn, TurnHistory};
use std::sync::Arc;
use std::time::Instant;
use tokio_util::sync::CancellationToken;
use turnstone_domain::checkpoint::InitBody;
use turnstone_domain::engagement::EngagementObject;
use turnstone_domain::short_circuit::ShortCircuit;
use turnstone_domain::tool_call::ToolCall;
use turnstone_domain::{Checkpoint, TurnWrite, question};
use turnstone_store::{Claim, Past as Stored, Recall};

/// The messages that are read on resume beyond the window of the agent's memory. An answer with its tool calls and
/// their outcomes fits in, even when a provider sends the most calls of one answer.
const RECALLED: u32 = 160;

/// Takes a claim and reads from the store what its turn needs; `None` for a plain job.
///
/// # Errors
/// [`Stop::Store`], and [`Stop::Fail`] when stored rows cannot be decoded.
pub async fn begin(deps: Arc<Deps>, claim: Claim) -> Result<Option<Box<Turn>>, Stop> {
    let Some(mut side) = claim.engagement else { return Ok(None) };
    // After a handoff another agent than the engagement's answers.
    side.agent = handoff::of(&deps, &side, &claim.envelope.meta).await?;
    side.engagement.agent.clone_from(&side.agent.name);
    let tokens = claim.envelope.extra.given("ext_agent_token_budget");
    let past = TurnHistory {
        object: tool_rules::reads_engagement(&deps.toolbox, &side.agent)
            .then(|| EngagementObject::begin(&side.engagement, &side.agent)),
        short_circuit: side.agent.short_circuit.map(ShortCircuit::new),
        ..TurnHistory::default()
    };
    // INIT's checkpoint is the first of a turn.
    let init = side.checkpoints.first().and_then(Checkpoint::read::<InitBody>);
    let (interaction_id, began_in) = init.map(|init| (init.interaction_id, init.span)).unwrap_or_default();
    let fan_out = deps.options.fan_out.of(&side.agent);
    let claimed = Claimed {
        job: JobFacts {
            id: claim.job,
            failures: claim.failures,
            retry: claim.retry,
            token_budget: tokens.and_then(|tokens| tokens.parse().ok()),
            args: claim.envelope.args,
            parent_results: claim.parent_results,
            meta: claim.envelope.meta,
        },
        engagement: side.engagement,
        agent: side.agent,
        is_of_crew: false,
        is_node: false,
        budgets: side.budgets,
        depth: side.depth,
        tree_jobs: side.tree_jobs,
        fan_out,
        delegates: None,
        reviewers: Reviewers::new(),
        slot: TurnSlot::default(),
        trace: Trace::none(),
        began_in,
        deps,
    };
    let outbox = Outbox {
        claimed,
        lease: claim.lease,
        record_end: side.record_end,
        deadline: Arc::default(),
        draining: CancellationToken::new(),
        budget: side.budget,
        pending: TurnWrite::default(),
        paid_before: 0,
        unrecorded: false,
        interaction_id,
        place: None,
        done: side.checkpoints.len(),
        phase_began: Instant::now(),
        position: side.position,
    };
    let bodies = Bodies::recalled(outbox.position.turn, side.checkpoints);
    let mut turn = Box::new(Turn { past, bodies, outbox, flow: None });
    recall(&mut turn.past, &turn.outbox, side.past).await?;
    Ok(Some(turn))
}

/// Reads messages, journal, reviews and delegations of an interrupted or continued engagement.
async fn recall(past: &mut TurnHistory, outbox: &Outbox, stored: Stored) -> Result<(), Stop> {
    let (claimed, turn) = (&outbox.claimed, outbox.position.turn);
    let agent = &claimed.agent;
    let window = agent.memory.window_size.saturating_add(RECALLED);
    // These two count the calls of all turns, not only of the current one.
    let whole = past.object.is_some() || past.short_circuit.is_some();
    let mut recall = match stored {
        Stored::Nothing => return Ok(()),
        Stored::Messages(messages) if messages.len() <= window as usize => {
            Recall { messages, ..Recall::default() }
        }
        _ => claimed.deps.ledger.reads().recall(&claimed.job.id, turn, window, whole).await?,
    };
    // After a handoff, the new agent may be one without `retain_memory`. It must not see the messages of earlier
    // engagements that the first agent recalled (OAS-50).
    recall.messages.retain(|stored| agent.retain_memory || stored.message.recalled_from.is_none());
    past.conversation = Conversation::recalled(&recall, &agent.memory, outbox.position.begins);
    if let Some(object) = &mut past.object {
        // The user's answer to a question of this turn is left out: expressions may read it only after EXEC has checked
        // it and passed it to the model.
        let conversation = &past.conversation;
        let is_new_answer = |call: &ToolCall| {
            call.turn == turn
                && question::is_one(&call.name)
                && !call.withheld
                && !conversation.has_outcome(&call.call_id)
        };
        let calls: Vec<ToolCall> =
            recall.tool_calls.iter().filter(|call| !is_new_answer(call)).cloned().collect();
        object.replay(&calls);
    }
    if let Some(watch) = &mut past.short_circuit {
        // Reads and changes of the agent's own state count as no repetition, and neither do notes in the journal.
        let is_call = |call: &&ToolCall| !call.is_note() && !exec::state_call::is_one(agent, &call.name);
        for call in recall.tool_calls.iter().filter(is_call) {
            watch.attempt(&call.name);
        }
    }
    past.reviews = recall.reviews;
    past.delegations = recall.delegations;
    past.fork = recall
        .fork
        .map(|(origin, recorded)| Box::new(Fork { origin, recorded, handed_over: None, resolved: None }));
    past.take_journal(turn, recall.tool_calls);
    Ok(())
}
