//! `GET /engagements/{id}`: the state that the caller may see (OpenAgentSpec, §Engagement).

use super::awaited_budget::Awaited;
use super::exposed::{self, Exposed};
use super::fork::ForkedFrom;
use super::state::{self, Awaiting};
use super::waiting::{self, Among, Wanted, waiting};
use crate::api::{App, Shared};
use crate::caller::Who;
use crate::reply::{self, Answer, Failure};
use crate::request::Segment;
use axum::extract::State;
use turnstone_domain::principal::{Principal, SUBMITTED_BY};
use turnstone_domain::review::{Review, ReviewState};
use turnstone_domain::{EngagementId, Job, JobId, JobState};
use turnstone_ojs::OjsError;
use turnstone_store::{DelegationLinks, EventFilter, Page, ReviewFilter};

/// The most engagements of a tree that are shown.
const MOST_LINKS: u32 = 1000;

/// The most open reviews of an engagement at one time.
const MOST_REVIEWS: u32 = 100;

/// The state of an engagement that its caller may see.
#[utoipa::path(
    get, path = "/engagements/{id}", operation_id = "show_engagement", tag = "engagements",
    security(("tenant" = ["viewer"])),
    params(("id" = String, Path, description = "The engagement.")),
    responses((status = 200, description = "The engagement.", body = state::State)),
)]
pub(crate) async fn show(State(app): State<Shared>, Segment(id): Segment, who: Who) -> Answer {
    let (engagement, agent, job_id) = super::find(&app, &id, &who.tenant).await?;
    let views = &app.api.store.views;
    let (job, links, review) = at_once(&app, &engagement.id, &job_id).await?;
    if who.caller.peer().is_some() && !is_begun_by(&job, &who.tenant.principal) {
        return Err(OjsError::not_found("engagement", &id).into());
    }
    let budget = views.budget(&engagement.id).await?;
    let mut waiting = waiting(&app, &engagement, &job, Among::Delegates).await?;
    // One question is displayed at a time.
    waiting.truncate(1);
    let requested = waiting.first().and_then(|one| match &one.wanted {
        Wanted::Answer(requested) => Some(requested),
        Wanted::Word(_) => None,
    });
    let exposed = match job.state {
        JobState::Completed => exposed::of(&app, &engagement, &agent).await?,
        _ if requested.is_some() => exposed::of(&app, &engagement, &agent).await?,
        _ => Exposed::default(),
    };
    let id = engagement.id.clone();
    let mut shown = state::State::of(engagement, &job, &budget, review.as_ref(), links, exposed.warnings);
    if let Some(requested) = requested {
        let call = app.api.store.questions.tool_call(&id, &requested.call_id).await?;
        shown.awaiting = Some(Awaiting::input(requested, call.as_ref().map(|call| &call.input)));
        shown.status = "waiting-for-input".to_owned();
        if !exposed.values.is_empty() {
            shown.results = Some(exposed.values.into());
        }
        waiting::note_displayed(&app, &waiting).await?;
    }
    if shown.awaiting.is_none()
        && let Some(awaited) = Awaited::of(&app, &id, &job).await?
    {
        // Another server may not read shared budgets.
        let tenant = Some(&who.tenant).filter(|_| who.caller.peer().is_none());
        shown.status = "budget_reached".to_owned();
        shown.awaiting = Some(Awaiting::budget(awaited.now(&app, tenant).await?));
    }
    if agent.flow.is_some() && !job.state.is_terminal() {
        shown.node = node(&app, &id).await?;
    }
    shown.forked_from = app.api.store.forks.origin(&job.id).await?.as_ref().map(ForkedFrom::from);
    Ok(reply::ok(&shown))
}

/// Returns true if a principal submitted the job, or the job above it. Another server sees only such engagements.
fn is_begun_by(job: &Job, principal: &Principal) -> bool {
    let submitter = job.envelope.meta.given(SUBMITTED_BY).and_then(|name| name.parse::<String>().ok());
    submitter.is_some() && submitter == principal.identity
}

/// The newest events of an engagement among which one names its node; a turn has fewer.
const NEWEST_EVENTS: u32 = 100;

/// Returns the node of a flow that runs or waits, with the nodes around it, from the newest event that names one.
async fn node(app: &App, id: &EngagementId) -> Result<Option<String>, Failure> {
    let views = &app.api.store.views;
    let newest = views.newest_events(vec![id.as_str().to_owned()]).await?;
    let Some((_, events)) = newest.into_iter().next() else { return Ok(None) };
    let filter = EventFilter::Engagement(id.clone());
    let after = (events - i64::from(NEWEST_EVENTS)).max(0);
    let found = views.events_after(&filter, after, NEWEST_EVENTS).await?;
    Ok(found.iter().rev().find_map(|event| event.identity().node))
}

/// How often a job is read anew that changes while it is read.
const LOOKS: usize = 5;

/// Returns a job, its delegates and the review that it waits for, as they were at one time. So the response never names
/// a wrong reviewer.
async fn at_once(
    app: &App,
    engagement: &EngagementId,
    id: &JobId,
) -> Result<(Job, DelegationLinks, Option<Review>), Failure> {
    let read = async || -> Result<Job, Failure> {
        let found = app.api.store.views.job(id).await?;
        found.ok_or_else(|| OjsError::not_found("job", id.shown()).into())
    };
    let mut job = read().await?;
    for look in 1.. {
        let links = app.api.store.delegations.links(id, MOST_LINKS).await?;
        let review = match job.state {
            JobState::Pending => open_review(app, engagement).await?,
            _ => None,
        };
        let now = read().await?;
        // Every way out of waiting and back into it is a claim.
        if (now.state, now.attempt) == (job.state, job.attempt) || look >= LOOKS {
            return Ok((now, links, review));
        }
        job = now;
    }
    Err(OjsError::internal("Nothing was read.").into())
}

/// Returns the review that the job waits for, of a call or of the engagement itself.
pub(crate) async fn open_review(app: &App, id: &EngagementId) -> Result<Option<Review>, Failure> {
    let filter = ReviewFilter {
        state: Some(ReviewState::Open),
        engagement: Some(id.clone()),
        ..ReviewFilter::default()
    };
    let page = Page { limit: MOST_REVIEWS, offset: 0 };
    Ok(app.api.store.views.reviews(&filter, page).await?.pop())
}
