//! The questions that a job waits with for its caller: those of its own agent or of a delegate.
//!
//! A delegate works for the same user as its parent, which only waits. So callers of the parent receive the delegate's
//! questions, and answer them there.

use crate::api::App;
use crate::reply::Failure;
use serde_json::Map;
use turnstone_domain::engagement::Engagement;
use turnstone_domain::question::{AskedUser, Question};
use turnstone_domain::review::{Review, ReviewState, is_call_of_review};
use turnstone_domain::{EngagementId, Job, JobId, JobState};
use turnstone_store::{DelegationLink, Page, ReviewFilter};

/// The most engagements of a tree that are searched.
const MOST_LINKS: u32 = 1000;
/// The most reviews of an engagement that are searched.
const REVIEWS: u32 = 1000;

/// The agents and the questions that are searched.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Among {
    /// The own agent and its delegates, and their questions to their user.
    Delegates,
    /// The same, and the reviews that are addressed to the user.
    Reviews,
}

impl Among {
    /// Returns true if reviews are included.
    pub(crate) fn reviews(self) -> bool {
        self == Self::Reviews
    }
}

/// An agent that may wait for the caller: the caller's own agent, or a delegate.
#[derive(Clone)]
pub(crate) struct Seat {
    pub(crate) engagement: Engagement,
    pub(crate) job: JobId,
}

/// The answer that is needed.
pub(crate) enum Wanted {
    /// An answer of the user.
    Answer(AskedUser),
    /// The user's answer as a reviewer.
    Word(Box<Review>),
}

/// An agent that waits.
pub(crate) struct Waiting {
    pub(crate) seat: Seat,
    pub(crate) wanted: Wanted,
}

impl Waiting {
    /// Returns its unique name: the call that asks, or the review.
    pub(crate) fn name(&self) -> &str {
        match &self.wanted {
            Wanted::Answer(requested) => requested.call_id.as_str(),
            Wanted::Word(review) => review.id.as_str(),
        }
    }
}

/// Returns the questions that a job of this engagement waits with, those of its own agent before those of delegates.
///
/// # Errors
/// The error of the store.
pub(crate) async fn waiting(
    app: &App,
    of: &Engagement,
    job: &Job,
    among: Among,
) -> Result<Vec<Waiting>, Failure> {
    let mut found = Vec::new();
    if job.state != JobState::Pending {
        return Ok(found);
    }
    for seat in seats(app, of, &job.id, true).await? {
        let wanted = match seat.job == job.id {
            true => wanted(app, &seat.engagement, job, among).await?,
            false => match app.api.store.views.job(&seat.job).await? {
                Some(job) => wanted(app, &seat.engagement, &job, among).await?,
                None => Vec::new(),
            },
        };
        found.extend(wanted.into_iter().map(|wanted| Waiting { seat: seat.clone(), wanted }));
    }
    Ok(found)
}

/// Returns the own agent of a job and its delegates; with `parked`, only delegates whose own job waits. Delegates
/// behind an output guardrail are left out: their questions are not shown outside (OAS-43).
///
/// # Errors
/// The error of the store.
pub(crate) async fn seats(
    app: &App,
    of: &Engagement,
    job: &JobId,
    parked: bool,
) -> Result<Vec<Seat>, Failure> {
    let mut places = vec![(of.id.clone(), job.clone())];
    places.extend(below(app, job, parked).await?);
    let mut seats = Vec::with_capacity(places.len());
    for (id, job) in places {
        let found = app.api.store.views.engagement(&id).await?;
        let shown = found.filter(|(_, agent, _)| !agent.guardrails.for_guarded);
        seats.extend(shown.map(|(engagement, _, _)| Seat { engagement, job }));
    }
    Ok(seats)
}

/// Returns the delegates of a job; with `parked`, those whose own job waits.
async fn below(app: &App, job: &JobId, parked: bool) -> Result<Vec<(EngagementId, JobId)>, Failure> {
    let links = app.api.store.delegations.links(job, MOST_LINKS).await?;
    // The reviewed agent calls reviewing agents; no user answers them.
    let reviews =
        |link: &DelegationLink| link.call_id.as_ref().is_some_and(|call| is_call_of_review(call.as_str()));
    let below = links.below.into_iter().filter(|link| !reviews(link));
    let below = below.filter(|link| !parked || link.state == JobState::Pending);
    Ok(below.map(|link| (link.engagement_id, link.job_id)).collect())
}

async fn wanted(app: &App, of: &Engagement, job: &Job, among: Among) -> Result<Vec<Wanted>, Failure> {
    if let Some(requested) = open_question(app, &of.id, job).await? {
        return Ok(vec![Wanted::Answer(requested)]);
    }
    if !among.reviews() || job.state != JobState::Pending {
        return Ok(Vec::new());
    }
    let open = |review: &Review| review.state == ReviewState::Open && !has_voted(review, &of.user.id);
    let open = reviews(app, of, &job.id).await?.into_iter().filter(open);
    Ok(open.map(|review| Wanted::Word(Box::new(review))).collect())
}

/// Returns the question that a job waits with.
async fn open_question(
    app: &App,
    engagement: &EngagementId,
    job: &Job,
) -> Result<Option<AskedUser>, Failure> {
    let asks = job.agent.as_ref().and_then(|agent| agent.position.asks.clone());
    let Some(call_id) = asks.filter(|_| job.state == JobState::Pending) else { return Ok(None) };
    let call = app.api.store.questions.tool_call(engagement, &call_id).await?;
    let question = call.and_then(|call| Question::read(&call.input).ok());
    Ok(question.map(|question| AskedUser { call_id, question, exposes: Map::new() }))
}

/// Notes that these questions are displayed: an answer that names none may go to them from now on.
///
/// # Errors
/// The error of the store.
pub(crate) async fn note_displayed(app: &App, waiting: &[Waiting]) -> Result<(), Failure> {
    let questions: Vec<String> = waiting.iter().map(|one| one.name().to_owned()).collect();
    if !questions.is_empty() {
        app.api.store.questions.record_displayed(questions).await?;
    }
    Ok(())
}

/// Returns true if a review of several reviewers has this user's vote.
pub(crate) fn has_voted(review: &Review, user: &str) -> bool {
    review.votes.iter().any(|vote| vote.step == review.step && vote.by == user)
}

/// Returns the reviews of a job that are addressed to its own user, alone or with others, the newest last.
///
/// # Errors
/// The error of the store.
pub(crate) async fn reviews(app: &App, of: &Engagement, job: &JobId) -> Result<Vec<Review>, Failure> {
    if !of.user.is_known() {
        return Ok(Vec::new());
    }
    let filter = ReviewFilter {
        reviewer: Some(of.user.id.clone()),
        engagement: Some(of.id.clone()),
        ..ReviewFilter::default()
    };
    let mut reviews = app.api.store.views.reviews(&filter, Page { limit: REVIEWS, offset: 0 }).await?;
    reviews.retain(|review| review.job_id == *job);
    Ok(reviews)
}
