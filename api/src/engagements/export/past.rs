//! What guardrails and reviewers said in the past that a fork shares with others, and of recorded calls that stand for its own:
//! with it the fork's document is whole.

use super::{events, reviews};
use crate::api::App;
use crate::reply::Failure;
use std::collections::{BTreeMap, BTreeSet};
use turnstone_domain::event::Event;
use turnstone_domain::fork::{ForkPoint, RecordedCheck};
use turnstone_domain::review::Review;
use turnstone_domain::tool_call::ToolCall;
use turnstone_domain::{CallId, EventName, JobId, Phase};

/// What is on record elsewhere and belongs to this engagement's past.
#[derive(Default)]
pub(super) struct Past {
    /// What guardrails came to, oldest first.
    pub events: Vec<Event>,
    /// What was decided, oldest first.
    pub reviews: Vec<Review>,
}

/// The past of a job's engagement; empty for one that is no fork. `calls` are all of its calls.
pub(super) async fn of(app: &App, job: &JobId, calls: &[ToolCall]) -> Result<Past, Failure> {
    let (mut past, mut job, mut until) = (Past::default(), job.clone(), None::<ForkPoint>);
    // Which of its calls a recorded one stands for.
    let mut stubs: BTreeMap<CallId, BTreeSet<(CallId, i64)>> = BTreeMap::new();
    for call in calls {
        if let Some(of) = &call.stub_of {
            stubs.entry(of.clone()).or_default().insert((call.call_id.clone(), call.turn));
        }
    }
    while let Some(origin) = app.api.store.forks.origin(&job).await? {
        let point = until.map_or(origin.point, |until| until.min(origin.point));
        let parent = &origin.engagement_id;
        let Some((_, _, parent_job)) = app.api.store.views.engagement(parent).await? else { break };
        let mut checks = events(app, parent).await?;
        checks.retain(|event| event.name == EventName::GuardrailChecked && is_shared(event, point));
        let mut decided = Vec::new();
        for review in reviews(app, parent).await? {
            if review.turn < point.turn || (review.turn == point.turn && point.phase > Phase::Exec) {
                decided.push(review.clone());
            }
            for (call_id, turn) in stubs.get(&review.call_id).into_iter().flatten().cloned() {
                decided.push(Review { call_id, turn, ..review.clone() });
            }
        }
        past.events.splice(0..0, checks);
        past.reviews.splice(0..0, decided);
        // A recorded call may stand for an older one itself.
        for call in app.api.store.views.tool_calls(parent).await? {
            if let (Some(of), Some(own)) = (call.stub_of, stubs.get(&call.call_id).cloned()) {
                stubs.entry(of).or_default().extend(own);
            }
        }
        (job, until) = (parent_job, Some(point));
    }
    Ok(past)
}

/// Whether a guardrail was asked before the point.
fn is_shared(event: &Event, point: ForkPoint) -> bool {
    RecordedCheck::told(event.turn, &event.data)
        .is_some_and(|check| (check.turn, check.phase()) < (point.turn, point.phase))
}
