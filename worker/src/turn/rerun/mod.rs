//! Runs a recorded engagement again. The phases of the worker run as they do for a job, and the record
//! replaces the world: models, tools, the time, ids and reviewers. No model and no tool is called, and
//! nothing is stored. Each phase must produce its recorded checkpoint.
//!
//! The result of RESOL belongs to the world, too: the tools are taken from the record.

mod compare;
mod tools;
mod world;

use crate::model::estimates::Estimates;
use crate::model::{ModelDefaults, Providers};
use crate::options::OnContextOverflow;
use crate::phases::verdict::{self, Verdict};
use crate::state::past::Fork;
use crate::state::{Bodies, Outbox, Stop, Turn, TurnHistory};
use crate::tool::Toolbox;
use crate::turn::begin;
use crate::{Deps, WorkerOptions, phases};
use async_recursion::async_recursion as boxed;
use compare::Recorded;
pub use compare::{Difference, Rerun};
use std::sync::Arc;
use std::time::Duration;
use turnstone_domain::agent::{FanOutRules, Identity};
use turnstone_domain::budget::{Budget, OnExceed};
use turnstone_domain::checkpoint::{EmitBody, InferBody, InitBody};
use turnstone_domain::engagement::Engagement;
use turnstone_domain::fork::{self, ForkChanges, ForkPoint, Origin, RecordedCall, RecordedCheck};
use turnstone_domain::ids::IdForm;
use turnstone_domain::memory::BEFORE;
use turnstone_domain::record::EngagementRecord;
use turnstone_domain::review::{Review, ReviewAnswer};
use turnstone_domain::turn_write::Position;
use turnstone_domain::{
    AgentDefinition, Checkpoint, EventName, JobState, Lease, Phase, RawJson, RecordEnd, Timestamp,
};
use turnstone_store::{Claim, Doorbell, EngagementClaim, Past as Stored};
use world::World;

/// More tokens than any answer has, because an answer that was paid for is not cut.
const MOST_TOKENS: i64 = 1_000_000_000;

/// Runs a recorded engagement again and returns the first difference, if there is one.
///
/// # Errors
/// A sentence with the reason why it cannot be run.
#[boxed]
pub async fn rerun(record: &EngagementRecord) -> Result<Rerun, String> {
    if let Some(gap) = record.gaps().first() {
        let difference = Difference::of(gap.turn, gap.phase, "it is missing from the record");
        return Ok(Rerun { difference: Some(difference), ..Rerun::default() });
    }
    let recorded = Recorded::of(record);
    let world = Arc::new(World::of(record));
    let claim = claim(record)?;
    let deps = deps(&world, "", "");
    let Ok(Some(mut turn)) = begin::begin(deps, claim).await else {
        return Err("the document has no job of an agent".to_owned());
    };
    let calls = record.calls.iter().filter(|call| call.outcome.is_some()).map(RecordedCall::from);
    let checked = record.events.iter().rev().filter(|event| event.name == EventName::GuardrailChecked);
    let mut known = fork::Recorded::of(calls.collect());
    known.checks = checked.filter_map(|event| RecordedCheck::of_event(event.turn, &event.data)).collect();
    known.is_all = true;
    turn.past.fork = Some(Box::new(Fork {
        origin: Origin {
            engagement_id: turn.outbox.claimed.engagement.id.clone(),
            point: ForkPoint { turn: 1, phase: Phase::Init },
            live_tools: false,
            changes: ForkChanges::default(),
        },
        recorded: known,
        handed_over: None,
        resolved: None,
    }));
    let mut run = Run { world, recorded, record, report: Rerun::default() };
    let difference = run.turns(&mut turn).await.err();
    run.report.difference = difference;
    Ok(run.report)
}

/// Returns a job as it is claimed the first time. Ids are those of the record, in every form.
fn claim(record: &EngagementRecord) -> Result<Claim, String> {
    let job = record.job.clone();
    let new = job.engagement.ok_or("the document has no job of an agent")?;
    if new.agent.flow.is_some() {
        return Err("the record is one of a flow, which cannot be run again yet".to_owned());
    }
    let form = IdForm::default();
    let identity = Identity { instance_id: form, interaction_id: form, ..new.agent.identity };
    let agent = AgentDefinition { identity, ..new.agent };
    Ok(Claim {
        lease: Lease { job: job.id.clone(), token: String::new(), expires_at: Timestamp(i64::MAX) },
        job: job.id,
        job_type: job.job_type,
        attempt: 1,
        failures: 0,
        lapses: 0,
        retry: job.retry,
        timeout_ms: None,
        parent_results: job.terms.parent_results,
        envelope: job.envelope,
        priority: job.priority,
        created_at: job.created_at,
        engagement: Some(EngagementClaim {
            engagement: Engagement {
                id: new.id,
                agent: agent.name.clone(),
                user: new.user,
                started_at: job.created_at,
                turns: 0,
            },
            agent: Arc::new(agent),
            position: Position { turn: 1, ..Position::default() },
            checkpoints: Vec::new(),
            record_end: RecordEnd::default(),
            budget: Budget::default(),
            depth: new.depth,
            tree_jobs: 1,
            budgets: Vec::new(),
            past: Stored::Nothing,
        }),
    })
}

/// Returns the shared parts of a turn, with the record as the world.
fn deps(world: &Arc<World>, worker_id: &str, provider: &str) -> Arc<Deps> {
    let mut providers = Providers::default();
    providers.set_catch_all(provider, Arc::clone(world) as _);
    let model = Some("recorded".to_owned());
    providers.set_defaults(ModelDefaults { provider: None, model });
    let options = WorkerOptions {
        worker_id: worker_id.to_owned(),
        queues: Vec::new(),
        slots: 1,
        lease: Duration::from_secs(60),
        drain_grace: Duration::ZERO,
        model_timeout: Duration::from_secs(60),
        max_tokens: MOST_TOKENS,
        on_context_overflow: OnContextOverflow::default(),
        on_exceed: OnExceed::default(),
        raise_wait: None,
        review_deadline: None,
        fan_out: FanOutRules::default(),
        artifacts: turnstone_domain::artifact::ArtifactLimits::default(),
    };
    let store = (Arc::clone(world) as _, Doorbell::default());
    let (clock, ids) = (Arc::clone(world) as _, Arc::clone(world) as _);
    let deps = Deps::new(store, clock, ids, providers, Toolbox::default(), options);
    Arc::new(deps.with_estimates(Estimates::of_record()))
}

struct Run<'a> {
    world: Arc<World>,
    recorded: Recorded<'a>,
    record: &'a EngagementRecord,
    report: Rerun,
}

impl Run<'_> {
    /// Runs turn after turn, to the end of the record.
    async fn turns(&mut self, turn: &mut Turn) -> Result<(), Difference> {
        let last = self.recorded.last_turn();
        if last == 0 {
            return Ok(());
        }
        loop {
            let number = turn.outbox.position.turn;
            let at = |what: &str| Difference::of(number, None, what);
            let found = phases::exec::delegates::look_up(&mut turn.outbox.claimed).await;
            found.map_err(|_| at("its agents cannot be looked up"))?;
            turn.past.reviews = self.reviews(number);
            let done = self.recorded.phases(number);
            for checkpoint in &done {
                self.phase(turn, checkpoint).await?;
            }
            if done.len() < Phase::ALL.len() {
                return self.said_differ(number);
            }
            self.report.turns += 1;
            let next = self.verdict(&mut turn.past, &mut turn.bodies, &mut turn.outbox, number, last)?;
            self.said_differ(number)?;
            match next {
                Some(position) => turn.advance(position),
                None => return Ok(()),
            }
        }
    }

    /// Compares the messages of a turn; with the first one, the messages recalled before it.
    fn said_differ(&self, turn: i64) -> Result<(), Difference> {
        let first = (turn == 1).then_some(BEFORE);
        let mut turns = first.into_iter().chain([turn]);
        turns.try_for_each(|turn| self.recorded.messages_differ(turn, &self.world.said(turn)))
    }

    fn reviews(&self, turn: i64) -> Vec<ReviewAnswer> {
        let counts = |review: &&Review| review.turn == turn && !review.spent;
        let of_turn = self.record.reviews.iter().filter(counts).cloned();
        of_turn.map(ReviewAnswer::from).collect()
    }

    /// Runs one phase, and compares its checkpoint.
    async fn phase(&mut self, turn: &mut Turn, recorded: &Checkpoint) -> Result<(), Difference> {
        let (number, phase) = (recorded.turn, recorded.phase);
        let (init, emit) = (recorded.read::<InitBody>(), recorded.read::<EmitBody>());
        let instance = init.map(|init| init.instance_id).or_else(|| emit.map(|emit| emit.instance_id));
        let provider = recorded.read::<InferBody>().map(|infer| infer.provider);
        turn.outbox.claimed.deps = deps(
            &self.world,
            instance.as_deref().unwrap_or_default(),
            provider.as_deref().unwrap_or_default(),
        );
        self.world.enter(self.record, recorded);
        turn.outbox.enter_phase();
        let ran = match phase {
            Phase::Init => phases::init::run(&mut turn.outbox),
            Phase::Norm => phases::norm::run(&mut turn.past, &mut turn.outbox).await,
            Phase::Resol => {
                let found = tools::found(&turn.outbox.claimed, self.record, recorded);
                if let (Some(fork), Some(found)) = (&mut turn.past.fork, found) {
                    fork.resolved = Some(found);
                }
                phases::resol::run(turn).await
            }
            Phase::Infer => {
                self.recorded
                    .said_from_outside(number)
                    .into_iter()
                    .for_each(|message| turn.past.say(&mut turn.outbox, message));
                phases::infer::run(turn).await
            }
            Phase::Exec => phases::exec::run(turn).await,
            Phase::Persist => {
                phases::persist::run(&mut turn.past, &mut turn.bodies, &mut turn.outbox, None).await
            }
            Phase::Emit => phases::emit::run(&turn.past, &mut turn.bodies, &mut turn.outbox).await,
        };
        let ran = match ran {
            Ok(()) => turn.outbox.barrier().await,
            stopped => stopped,
        };
        ran.map_err(|stop| Difference::of(number, Some(phase), &format!("it stops: {}", why(&stop))))?;
        self.report.phases += 1;
        let left = self.world.left(number, phase);
        compare::checkpoints_differ(recorded, left.as_ref(), self.record.is_inherited(number))
    }

    /// Returns the position after a complete turn, when the record has the same verdict.
    fn verdict(
        &self,
        past: &mut TurnHistory,
        bodies: &mut Bodies,
        outbox: &mut Outbox,
        number: i64,
        last: i64,
    ) -> Result<Option<Position>, Difference> {
        let decided = phases::persist::committed(bodies)
            .and_then(|()| bodies.inferred())
            .and_then(|inferred| verdict::verdict(past, outbox, &inferred));
        let decided = match decided {
            Ok(Verdict::HandedOver(result)) => {
                outbox.screen_result(result).map(Verdict::Complete).map_err(Stop::from)
            }
            decided => decided,
        };
        let end = &self.record.end;
        match decided {
            Ok(Verdict::Continue(position)) => Ok((number < last).then_some(position)),
            Ok(Verdict::Reask(position, why)) => {
                if number < last || end.state != JobState::Completed {
                    verdict::reask(past, outbox, &why);
                }
                self.world.take(outbox.take_pending());
                Ok((number < last).then_some(position))
            }
            Ok(Verdict::Complete(result) | Verdict::HandedOver(result)) => {
                let result = RawJson::of(&result);
                let same =
                    number == last && end.result.as_ref().map(RawJson::as_str) == Some(result.as_str());
                let recorded = end.result.as_ref().map_or("none", RawJson::as_str);
                if same { Ok(None) } else { Err(Difference::result(number, recorded, result.as_str())) }
            }
            // A complete turn that failed is followed by another one, when there is another attempt.
            Err(_) if number < last => {
                let (model_used, granted) = (outbox.position.model_used.clone(), outbox.position.granted);
                Ok(Some(Position { turn: number + 1, model_used, granted, ..Position::default() }))
            }
            Err(stop) => {
                let recorded = end.errors.last().map(|failed| failed.error.code().to_owned());
                let failed = matches!(&stop, Stop::Fail(error) if recorded.as_deref() == Some(error.code()));
                let recorded = recorded.unwrap_or_else(|| end.state.to_string());
                if failed || end.state == JobState::Cancelled {
                    Ok(None)
                } else {
                    Err(Difference::result(number, &recorded, &why(&stop)))
                }
            }
        }
    }
}

fn why(stop: &Stop) -> String {
    match stop {
        Stop::Fail(error) => error.to_string(),
        Stop::Park(_) => "it waits for a reviewer that the record does not have".to_owned(),
        other => format!("{other:?}"),
    }
}
