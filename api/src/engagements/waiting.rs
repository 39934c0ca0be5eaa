//! What a job waits for that its caller is to say: what its own agent asks, or one of those that work for it.
//!
//! A delegate works for the same user as the agent that set it to work. Its parent only waits, so whoever follows the parent is
//! told of the delegate's questions, and answers them there.

use super::answer::asked;
use crate::api::App;
use crate::reply::Failure;
use turnstone_domain::engagement::Engagement;
use turnstone_domain::question::AskedUser;
use turnstone_domain::review::{Review, ReviewState, is_call_of_review};
use turnstone_domain::{EngagementId, Job, JobId, JobState};
use turnstone_store::{Kin, Page, ReviewFilter};

/// At most this many of a tree are looked through.
const MOST_KIN: u32 = 1000;
/// Reviews of an engagement that are looked through.
const REVIEWS: u32 = 1000;

/// Who may wait for the caller: the caller's own agent, or one that works for it.
pub(crate) struct Seat {
    pub(crate) engagement: EngagementId,
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
pub(crate) async fn waiting(app: &App, of: &Engagement, job: &Job) -> Result<Vec<Waiting>, Failure> {
    let mut found = Vec::new();
    if job.state != JobState::Pending {
        return Ok(found);
    }
    let own = Seat { engagement: of.id.clone(), job: job.id.clone() };
    found.extend(wanted(app, of, job).await?.map(|wanted| Waiting { seat: own, wanted }));
    let views = &app.api.store.views;
    for seat in below(app, &job.id, true).await? {
        let Some((engagement, agent, _)) = views.engagement(&seat.engagement).await? else { continue };
        // What one says that works behind an output guardrail is not for the caller (OAS-43).
        let Some(job) = views.job(&seat.job).await?.filter(|_| !agent.guardrails.for_guarded) else {
            continue;
        };
        found.extend(wanted(app, &engagement, &job).await?.map(|wanted| Waiting { seat, wanted }));
    }
    Ok(found)
}

/// Those who work for a job; with `parked` those whose own job waits.
///
/// # Errors
/// The store's.
pub(crate) async fn below(app: &App, job: &JobId, parked: bool) -> Result<Vec<Seat>, Failure> {
    let kindred = app.api.store.delegations.kindred(job, MOST_KIN).await?;
    // Reviewers are asked by the reviewed agent, and are nobody's to talk to.
    let reviews = |kin: &Kin| kin.call_id.as_ref().is_some_and(|call| is_call_of_review(call.as_str()));
    let below = kindred.below.into_iter().filter(|kin| !reviews(kin));
    let below = below.filter(|kin| !parked || kin.state == JobState::Pending);
    Ok(below.map(|kin| Seat { engagement: kin.engagement_id, job: kin.job_id }).collect())
}

async fn wanted(app: &App, of: &Engagement, job: &Job) -> Result<Option<Wanted>, Failure> {
    if let Some(asked) = asked(app, &of.id, job).await? {
        return Ok(Some(Wanted::Answer(asked)));
    }
    let open = |review: &Review| review.state == ReviewState::Open && !has_voted(review, &of.user.id);
    let review = reviews(app, of, &job.id).await?.pop().filter(open);
    Ok(review.filter(|_| job.state == JobState::Pending).map(|review| Wanted::Word(Box::new(review))))
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
