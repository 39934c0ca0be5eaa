//! What a job waits for that its caller is to say: what its own agent asks, or one of those that work for it.
//!
//! A delegate works for the same user as the agent that set it to work. Its parent only waits, so whoever follows the parent is
//! told of the delegate's questions, and answers them there.

use crate::api::App;
use crate::reply::Failure;
use turnstone_domain::engagement::Engagement;
use turnstone_domain::question::{AskedUser, Question};
use turnstone_domain::review::{Review, ReviewState, is_call_of_review};
use turnstone_domain::{EngagementId, Job, JobId, JobState};
use turnstone_store::{Kin, Page, ReviewFilter};

/// At most this many of a tree are looked through.
const MOST_KIN: u32 = 1000;
/// Reviews of an engagement that are looked through.
const REVIEWS: u32 = 1000;

/// Who is looked at, and what for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Among {
    /// The own agent, and what it asks its user.
    Own,
    /// The same, and those who work for it.
    Delegates,
    /// The same, and the reviews that the user is asked for.
    Reviews,
}

impl Among {
    /// Whether reviews are meant, too.
    pub(crate) fn reviews(self) -> bool {
        self == Self::Reviews
    }
}

/// Who may wait for the caller: the caller's own agent, or one that works for it.
pub(crate) struct Seat {
    pub(crate) engagement: Engagement,
    pub(crate) job: JobId,
}

/// What is to be said.
pub(crate) enum Wanted {
    /// An answer of the user.
    Answer(AskedUser),
    /// The word of the user as a reviewer.
    Word(Box<Review>),
}

/// Somebody who waits.
pub(crate) struct Waiting {
    pub(crate) seat: Seat,
    pub(crate) wanted: Wanted,
}

impl Waiting {
    /// By what it is told from others: the call that asks, or the review.
    pub(crate) fn name(&self) -> &str {
        match &self.wanted {
            Wanted::Answer(asked) => asked.call_id.as_str(),
            Wanted::Word(review) => review.id.as_str(),
        }
    }
}

/// What a job of this engagement waits for, its own agent before those that work for it.
///
/// # Errors
/// The store's.
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
    for seat in seats(app, of, &job.id, among, true).await? {
        let wanted = match seat.job == job.id {
            true => wanted(app, &seat.engagement, job, among).await?,
            false => match app.api.store.views.job(&seat.job).await? {
                Some(job) => wanted(app, &seat.engagement, &job, among).await?,
                None => None,
            },
        };
        found.extend(wanted.map(|wanted| Waiting { seat, wanted }));
    }
    Ok(found)
}

/// The own agent of a job and those who work for it; with `parked` of the latter those whose own job waits. What one says that
/// works behind an output guardrail is for nobody outside, so nobody has anything to say to it either (OAS-43).
///
/// # Errors
/// The store's.
pub(crate) async fn seats(
    app: &App,
    of: &Engagement,
    job: &JobId,
    among: Among,
    parked: bool,
) -> Result<Vec<Seat>, Failure> {
    let mut places = vec![(of.id.clone(), job.clone())];
    if among != Among::Own {
        places.extend(below(app, job, parked).await?);
    }
    let mut seats = Vec::with_capacity(places.len());
    for (id, job) in places {
        let found = app.api.store.views.engagement(&id).await?;
        let shown = found.filter(|(_, agent, _)| !agent.guardrails.for_guarded);
        seats.extend(shown.map(|(engagement, _, _)| Seat { engagement, job }));
    }
    Ok(seats)
}

/// Those who work for a job; with `parked` those whose own job waits.
async fn below(app: &App, job: &JobId, parked: bool) -> Result<Vec<(EngagementId, JobId)>, Failure> {
    let kindred = app.api.store.delegations.kindred(job, MOST_KIN).await?;
    // Reviewers are asked by the reviewed agent, and are nobody's to talk to.
    let reviews = |kin: &Kin| kin.call_id.as_ref().is_some_and(|call| is_call_of_review(call.as_str()));
    let below = kindred.below.into_iter().filter(|kin| !reviews(kin));
    let below = below.filter(|kin| !parked || kin.state == JobState::Pending);
    Ok(below.map(|kin| (kin.engagement_id, kin.job_id)).collect())
}

async fn wanted(app: &App, of: &Engagement, job: &Job, among: Among) -> Result<Option<Wanted>, Failure> {
    if let Some(asked) = asked(app, &of.id, job).await? {
        return Ok(Some(Wanted::Answer(asked)));
    }
    if !among.reviews() || job.state != JobState::Pending {
        return Ok(None);
    }
    let open = |review: &Review| review.state == ReviewState::Open && !has_voted(review, &of.user.id);
    let review = reviews(app, of, &job.id).await?.pop().filter(open);
    Ok(review.map(|review| Wanted::Word(Box::new(review))))
}

/// The question that a job waits with.
async fn asked(app: &App, engagement: &EngagementId, job: &Job) -> Result<Option<AskedUser>, Failure> {
    let asks = job.agent.as_ref().and_then(|agent| agent.position.asks.clone());
    let Some(call_id) = asks.filter(|_| job.state == JobState::Pending) else { return Ok(None) };
    let call = app.api.store.questions.tool_call(engagement, &call_id).await?;
    let question = call.and_then(|call| Question::read(&call.input).ok());
    Ok(question.map(|question| AskedUser { call_id, question }))
}

/// Notes that somebody is told of these: who names no question may mean them from now on.
///
/// # Errors
/// The store's.
pub(crate) async fn tell(app: &App, waiting: &[Waiting]) -> Result<(), Failure> {
    let questions: Vec<String> = waiting.iter().map(|one| one.name().to_owned()).collect();
    if !questions.is_empty() {
        app.api.store.questions.questions_told(questions).await?;
    }
    Ok(())
}

/// Whether a review has the word of one of several who are asked together.
pub(crate) fn has_voted(review: &Review, user: &str) -> bool {
    review.votes.iter().any(|vote| vote.step == review.step && vote.by == user)
}

/// The reviews of a job that its own user is asked for, alone or with others, the newest last.
///
/// # Errors
/// The store's.
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
