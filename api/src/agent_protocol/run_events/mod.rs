//! Writes the events of a run. It reads new events of an engagement and its delegates, and stores them with
//! the numbers that every reader of the Agent Protocol sees.
//!
//! A delegate's events come after the event that started it and before the one of its end, whatever the
//! clocks of the workers are.

mod marks;
mod render;

pub(super) use render::result;

use crate::api::App;
use marks::{Mark, Marks};
use render::{Beside, Draft, RunAgent};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use turnstone_domain::agent::delegation::{DelegationMode, DelegationState};
use turnstone_domain::artifact::Artifact;
use turnstone_domain::engagement::Engagement;
use turnstone_domain::event::{DelegationEnd, DelegationRole, DelegationStart, Event, EventBody};
use turnstone_domain::message::Role;
use turnstone_domain::review::is_call_of_review;
use turnstone_domain::tool_call::ToolOutcome;
use turnstone_domain::{EngagementId, EventName, JobId, Phase};
use turnstone_store::{EventFilter, News, StoreError};

/// Our events that are read at once.
const PAGE: u32 = 200;
/// The most events that are written at once, and about how many bytes of them; a long run takes several
/// rounds.
const ROUND: usize = 500;
const ROUND_BYTES: usize = 2 * 1024 * 1024;
/// Messages of a turn that are searched for the model's answer.
const MESSAGES: u32 = 200;

/// The position up to which a run is written.
pub(super) struct Heard {
    /// The number of its last event.
    pub last: i64,
    /// The engagements whose events announce more.
    pub streams: Vec<String>,
}

/// Writes all new events of a run and returns its position.
///
/// # Errors
/// The error of the store.
pub(super) async fn catch_up(app: &App, run: &Engagement) -> Result<Heard, StoreError> {
    let (whole, agent, run) = (run, &run.agent, &run.id);
    let runs = &app.api.store.runs;
    loop {
        let reported = runs.position(run).await?;
        let marks = Marks::read(&reported.marks, run, agent);
        let mut round = Round::begin(app, whole, reported.last, &marks).await?;
        let complete = round.walk(run.clone(), true).await?;
        let last = reported.last + i64::try_from(round.events.len()).unwrap_or(i64::MAX);
        if round.events.is_empty() && round.marks == marks {
            return Ok(Heard { last, streams: marks.all() });
        }
        let (news, streams) = (round.news(), round.marks.all());
        if runs.advance(run, reported.last, news).await? && complete {
            return Ok(Heard { last, streams });
        }
    }
}

/// The findings of one round.
struct Round<'a> {
    app: &'a App,
    run: EngagementId,
    /// The run's own agent, which speaks unless another one took over.
    agent: String,
    /// The user of the run.
    caller: String,
    last: i64,
    marks: Marks,
    /// Requests that have begun, and whether they have ended.
    begun: BTreeMap<JobId, bool>,
    /// The client's ids of its requests, and their models.
    jobs: BTreeMap<JobId, RequestFacts>,
    events: Vec<(JobId, Draft)>,
    bytes: usize,
    requests: BTreeMap<JobId, (i64, Option<i64>)>,
    /// True for engagements whose pieces may be sent before the whole answer counts (AP-A17).
    live: BTreeMap<EngagementId, bool>,
    /// The preferred model of each engagement's agent; none is the server's default.
    models: BTreeMap<EngagementId, Option<String>>,
}

/// The facts about the job of a request.
#[derive(Clone, Default)]
struct RequestFacts {
    name: String,
    input: String,
    model: Option<String>,
    /// True if the request asks for more detail (`logging_level: debug`).
    debug: bool,
}

impl<'a> Round<'a> {
    async fn begin(app: &'a App, run: &Engagement, last: i64, marks: &Marks) -> Result<Self, StoreError> {
        let begun = app.api.store.runs.run_requests(&run.id).await?;
        let begun = begun.into_iter().map(|request| (request.job, request.ended.is_some())).collect();
        Ok(Self {
            app,
            run: run.id.clone(),
            agent: run.agent.clone(),
            caller: run.user.id.clone(),
            last,
            marks: marks.clone(),
            begun,
            jobs: BTreeMap::new(),
            events: Vec::new(),
            bytes: 0,
            requests: BTreeMap::new(),
            live: BTreeMap::new(),
            models: BTreeMap::new(),
        })
    }

    fn news(&self) -> News {
        let body = |((job, draft), id): (&(JobId, Draft), i64)| {
            let mut body = Draft::new();
            body.insert("id".to_owned(), id.into());
            body.insert("run_id".to_owned(), self.run.as_str().into());
            body.extend(draft.clone());
            (job.clone(), Value::Object(body).to_string())
        };
        let requests = self.requests.iter().map(|(job, (began, ended))| (job.clone(), *began, *ended));
        News {
            events: self.events.iter().zip(self.last + 1..).map(body).collect(),
            requests: requests.collect(),
            marks: self.marks.to_text(),
        }
    }

    /// Reads on in one engagement, and, with `below`, in its delegates. Returns false when the round is full
    /// before everything was read.
    async fn walk(&mut self, engagement: EngagementId, below: bool) -> Result<bool, StoreError> {
        loop {
            let Some(mark) = self.marks.of(&engagement).cloned() else { return Ok(true) };
            let filter = EventFilter::Engagement(engagement.clone());
            let page = self.app.api.store.views.events_after(&filter, mark.seq, PAGE).await?;
            let read_all = page.len() < PAGE as usize;
            for event in page {
                if self.is_full() || !self.step(&engagement, &event).await? {
                    return Ok(false);
                }
                self.marks.move_to(&engagement, event.seq);
            }
            if read_all {
                return if below { self.walk_below(&engagement).await } else { Ok(true) };
            }
        }
    }

    async fn walk_below(&mut self, engagement: &EngagementId) -> Result<bool, StoreError> {
        for child in self.marks.below(engagement) {
            if !Box::pin(self.walk(child, true)).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Writes one of our events. Returns false when the round is full before the events that have to come
    /// first were written.
    async fn step(&mut self, engagement: &EngagementId, event: &Event) -> Result<bool, StoreError> {
        let Some(mark) = self.marks.of(engagement).cloned() else { return Ok(true) };
        match event.body() {
            Some(EventBody::DelegationStarted(DelegationStart {
                role: DelegationRole::Parent,
                engagement_id: Some(child),
                call_id,
                agent_id,
                mode,
                ..
            })) => {
                // A reviewing agent's events about another agent's output are not published (OAS-32, §6.1.3).
                if !call_id.is_some_and(|call| is_call_of_review(call.as_str())) {
                    let request = mark.request.clone().unwrap_or_else(|| event.job_id.clone());
                    let below = Mark {
                        seq: 0,
                        agent: agent_id,
                        depth: mark.depth + 1,
                        request: Some(request),
                        above: Some(engagement.clone()),
                        handoff: mode == DelegationMode::Handoff,
                    };
                    self.marks.put(child, below);
                }
                return Ok(true);
            }
            Some(EventBody::DelegationCompleted(DelegationEnd {
                role: DelegationRole::Parent,
                engagement_id: Some(child),
                status,
                ..
            })) => {
                if !Box::pin(self.walk(child.clone(), true)).await? {
                    return Ok(false);
                }
                let succeeded = status == DelegationState::Success;
                let took_over = self.marks.of(&child).filter(|child| child.handoff && succeeded);
                if let Some(agent) = took_over.map(|child| child.agent.clone()) {
                    self.marks.put(engagement.clone(), Mark { agent, ..mark });
                }
                self.marks.forget(&child);
                return Ok(true);
            }
            _ => {}
        }
        let mark = self.listen(engagement, &mark, event);
        self.tell(engagement, &mark, event).await.map(|()| true)
    }

    async fn tell(
        &mut self,
        engagement: &EngagementId,
        mark: &Mark,
        event: &Event,
    ) -> Result<(), StoreError> {
        let job = mark.request.clone().unwrap_or_else(|| event.job_id.clone());
        let begins = mark.depth == 0 && (event.name == EventName::JobStarted || event.name.ends_job());
        let state = self.begun.get(&job).copied();
        // After its end no event of a request is published, also when an operator revives the job.
        if state == Some(true) || (state.is_none() && !begins) {
            return Ok(());
        }
        let requested = self.request_facts(&job).await?;
        let part = RunAgent {
            agent: mark.agent.clone(),
            depth: mark.depth,
            request: requested.name.clone(),
            caller: self.caller.clone(),
        };
        if state.is_none() {
            let drafts = render::beginning(&part, event.at, Some(&requested.input));
            self.requests.insert(job.clone(), (self.next(), None));
            self.begun.insert(job.clone(), false);
            self.put(&job, drafts);
        }
        let beside = self.beside(engagement, event, &requested).await?;
        let drafts = render::drafts(&part, event, &beside);
        self.put(&job, drafts);
        if mark.depth == 0 && event.name.ends_job() {
            let last = self.next() - 1;
            let began = self.requests.get(&job).map_or(0, |(began, _)| *began);
            self.requests.insert(job.clone(), (began, Some(last)));
            self.begun.insert(job, true);
        }
        Ok(())
    }

    /// Notes who speaks from now on. A turn names the agent that took over; without one the run's own agent
    /// speaks.
    fn listen(&mut self, engagement: &EngagementId, mark: &Mark, event: &Event) -> Mark {
        if mark.depth > 0 || !event.completes(Phase::Init) {
            return mark.clone();
        }
        let agent = event.identity().agent.unwrap_or_else(|| self.agent.clone());
        let mark = Mark { agent, ..mark.clone() };
        self.marks.put(engagement.clone(), mark.clone());
        mark
    }

    fn put(&mut self, job: &JobId, drafts: impl IntoIterator<Item = Draft>) {
        for draft in drafts {
            self.bytes += render::size(&draft);
            self.events.push((job.clone(), draft));
        }
    }

    /// Returns true if the rest is for another round.
    fn is_full(&self) -> bool {
        self.events.len() >= ROUND || self.bytes >= ROUND_BYTES
    }

    /// Returns the number of the next event.
    fn next(&self) -> i64 {
        self.last + 1 + i64::try_from(self.events.len()).unwrap_or(i64::MAX - 1)
    }

    /// Returns the job of a request.
    async fn request_facts(&mut self, job: &JobId) -> Result<RequestFacts, StoreError> {
        if let Some(known) = self.jobs.get(job) {
            return Ok(known.clone());
        }
        let (found, names) = (self.app.api.store.views.job(job).await?, self.app.names().await?);
        let requested = found.map_or_else(
            || RequestFacts { name: job.to_string(), ..RequestFacts::default() },
            |job| RequestFacts {
                name: super::name::of(names, &job),
                input: super::name::input(&job),
                model: job.envelope.extra.given("ext_agent_model").and_then(|model| model.parse().ok()),
                debug: super::name::kept(&job)["logging_level"] == "debug",
            },
        );
        self.jobs.insert(job.clone(), requested.clone());
        Ok(requested)
    }

    /// Returns the facts that the event does not carry itself.
    async fn beside(
        &mut self,
        id: &EngagementId,
        event: &Event,
        requested: &RequestFacts,
    ) -> Result<Beside, StoreError> {
        let mut beside = Beside { debug: requested.debug && *id == self.run, ..Beside::default() };
        if event.completes(Phase::Resol) {
            // The job of a request names the model of the caller's own agent only.
            let own = requested.model.clone().filter(|_| *id == self.run);
            beside.model = if own.is_some() { own } else { self.model_of(id).await? };
        }
        let store = &self.app.api.store;
        if event.completes(Phase::Infer) && self.speaks_live(id).await? {
            let said = store.runs.said(id, event.turn, MESSAGES).await?;
            let answer = said.into_iter().rev().find(|said| said.message.role == Role::Assistant);
            beside.text = answer.map(|said| said.message.content);
        }
        self.beside_call(id, event, &mut beside).await?;
        if matches!(event.name, EventName::InputRequested | EventName::ReviewOpened) && *id != self.run {
            let found = store.views.engagement(id).await?;
            beside.guarded = found.is_none_or(|(_, agent, _)| agent.guardrails.for_guarded);
        }
        if let Some(EventBody::ReviewOpened(review)) = event.body() {
            let first = store
                .views
                .review_of(&review.review_id, None)
                .await?
                .and_then(|review| review.plan.steps.into_iter().next());
            beside.caller_is_asked = first.is_some_and(|step| step.members.contains(&self.caller));
        }
        if event.name == EventName::JobCompleted {
            let job = store.views.job(&event.job_id).await?;
            beside.result = job.and_then(|job| job.result?.parse().ok());
            // No text of a guarded agent's delegate is published: no guardrail of its own has passed it.
            beside.held_back = !self.speaks_live(id).await? && !self.works_for_guarded(id).await?;
            beside.files = self.held_files(id, &event.job_id).await?;
        }
        Ok(beside)
    }

    /// Reads the arguments and the output of a call whose event does not carry them.
    async fn beside_call(
        &self,
        id: &EngagementId,
        event: &Event,
        beside: &mut Beside,
    ) -> Result<(), StoreError> {
        let (call, ends_untold, is_long) = match event.body() {
            Some(EventBody::ToolCompleted(call)) => {
                (call.call_id, call.stub_of.is_some(), call.output_bytes.is_some())
            }
            Some(EventBody::ToolFailed(call)) => (call.call_id, true, false),
            _ => return Ok(()),
        };
        if !ends_untold && !is_long {
            return Ok(());
        }
        let Some(call) = self.app.api.store.questions.tool_call(id, &call).await? else { return Ok(()) };
        if ends_untold && call.sends == 0 {
            // The arguments of a guarded agent come from its model, and no guardrail has passed them (OAS-43).
            let found = self.app.api.store.views.engagement(id).await?;
            let mut shown = call.input;
            match found.filter(|(_, agent, _)| !agent.guardrails.hold_back()) {
                Some((_, agent, _)) => agent.safety.redact(&mut shown),
                None => shown = json!({}),
            }
            beside.untold = Some(shown);
        }
        beside.output = match call.outcome {
            Some(ToolOutcome::Success { output }) if is_long && !call.withheld => Some(output),
            _ => None,
        };
        Ok(())
    }

    /// Returns the files of a job that has just passed an output guardrail: no event contained them before
    /// (OAS-43).
    async fn held_files(&self, id: &EngagementId, job: &JobId) -> Result<Vec<Artifact>, StoreError> {
        let store = &self.app.api.store;
        let Some((_, agent, _)) = store.views.engagement(id).await? else { return Ok(Vec::new()) };
        if agent.guardrails.output.is_none() || agent.guardrails.is_shown_by_its_caller() {
            return Ok(Vec::new());
        }
        let mut files = store.artifacts.artifacts(id).await?;
        files.retain(|file| file.job_id.as_ref() == Some(job) && !file.withheld);
        Ok(files)
    }

    /// Returns true if this agent's text may be published before its whole answer has passed every check.
    async fn speaks_live(&mut self, id: &EngagementId) -> Result<bool, StoreError> {
        if let Some(live) = self.live.get(id) {
            return Ok(*live);
        }
        let found = self.app.api.store.views.engagement(id).await?;
        let live = found.is_some_and(|(_, agent, _)| agent.speaks_live());
        self.live.insert(id.clone(), live);
        Ok(live)
    }

    /// Returns the model that this agent prefers, if it names one.
    async fn model_of(&mut self, id: &EngagementId) -> Result<Option<String>, StoreError> {
        if let Some(model) = self.models.get(id) {
            return Ok(model.clone());
        }
        let found = self.app.api.store.views.engagement(id).await?;
        let model = found.and_then(|(_, agent, _)| Some(agent.model.models.first()?.model.clone()));
        self.models.insert(id.clone(), model.clone());
        Ok(model)
    }

    /// Returns true if it works for an agent with an output guardrail (OAS-43).
    async fn works_for_guarded(&self, id: &EngagementId) -> Result<bool, StoreError> {
        let found = self.app.api.store.views.engagement(id).await?;
        Ok(found.is_none_or(|(_, agent, _)| agent.guardrails.is_shown_by_its_caller()))
    }
}
