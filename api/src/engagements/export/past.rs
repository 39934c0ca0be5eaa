//! The results of guardrails and reviews in the past that a fork shares, and of recorded calls that it reuses. They
//! complete the fork's document.

use super::{events, reviews};
use crate::api::App;
use crate::reply::Failure;
use std::collections::{BTreeMap, BTreeSet};
use turnstone_domain::event::Event;
use turnstone_domain::fork::{ForkPoint, RecordedCheck};
use turnstone_domain::review::Review;
use turnstone_domain::tool_call::ToolCall;
use turnstone_domain::{CallId, EventName, JobId, Phase};

/// The records of other engagements that belong to this one's past.
#[derive(Default)]
pub(super) struct Past {
    /// The results of guardrails, oldest first.
    pub events: Vec<Event>,
    /// The reviews, oldest first.
    pub reviews: Vec<Review>,
}

/// Returns the past of a job's engagement; empty for one that is no fork. `calls` are all of its calls.
pub(super) async fn of(app: &App, job: &JobId, calls: &[ToolCall]) -> Result<Past, Failure> {
    let (mut past, mut job, mut until) = (Past::default(), job.clone(), None::<ForkPoint>);
    // The calls that reuse the outcome of each recorded call.
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
        // A recorded call may reuse the outcome of an older one itself.
        for call in app.api.store.views.tool_calls(parent).await? {
            if let (Some(of), Some(own)) = (call.stub_of, stubs.get(&call.call_id).cloned()) {
                stubs.entry(of).or_default().extend(own);
            }
        }
        (job, until) = (parent_job, Some(point));
    }
    Ok(past)
}

/// Returns true if a guardrail checked it before the fork point.
fn is_shared(event: &Event, point: ForkPoint) -> bool {
    RecordedCheck::of_event(event.turn, &event.data)
        .is_some_and(|check| (check.turn, check.phase()) < (point.turn, point.phase))
}
