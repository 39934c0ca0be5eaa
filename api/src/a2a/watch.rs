//! Waits for a task, and streams its changes as server-sent events (A2A 1.0 §3.1.2, §3.1.6).

use super::rpc::{self, RpcRefusal};
use super::task::{self, ANSWER};
use crate::api::Shared;
use crate::stream::{Feed, Source, StreamFrame};
use axum::response::sse::{Event as Frame, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use std::collections::{BTreeSet, VecDeque};
use std::convert::Infallible;
use std::time::Duration;
use tokio::time::error::Elapsed;
use turnstone_domain::feed::StreamCursor;
use turnstone_domain::{EventName, Job, JobState};
use turnstone_store::{EventFilter, Piece};

/// The interval of polling for questions of a parked job's delegates.
const LOOK: Duration = Duration::from_secs(2);

/// Waits until the task has ended or waits for its client. A client that disconnects ends the waiting, and not the
/// task.
pub(super) async fn until_it_rests(app: &Shared, mut job: Job) -> Result<Job, RpcRefusal> {
    let mut feed = open(app, &job, false).await?;
    loop {
        if task::rests(&task::status(app, &job).await?) {
            return Ok(job);
        }
        loop {
            match heard(&mut feed, &job).await {
                Ok(Some(StreamFrame::Event(event))) if !moves(event.name) => {}
                Ok(Some(_)) | Err(_) => break,
                // The server drains: the current state is returned, and the client polls again.
                Ok(None) => return Ok(latest(app, &job).await?.unwrap_or(job)),
            }
        }
        job = latest(app, &job).await?.ok_or_else(|| RpcRefusal::no_task(job.id.shown()))?;
    }
}

/// Streams the task and its changes, until it has ended or waits for its client.
pub(super) async fn stream(app: Shared, origin: String, id: Value, job: Job) -> Response {
    let begun = begin(&app, &origin, &job).await;
    let (feed, task) = match begun {
        Ok(begun) => begun,
        Err(refusal) => return rpc::answer(&id, Err(refusal)),
    };
    let over = task::rests(&task["status"]);
    let state = task["status"].clone();
    let known = task["artifacts"].as_array().into_iter().flatten();
    let files = known.filter_map(|artifact| artifact["artifactId"].as_str().map(str::to_owned)).collect();
    let watched = TaskStream {
        app,
        origin,
        files,
        id,
        job,
        feed,
        state,
        spoken: false,
        updates: VecDeque::from([json!({"task": task})]),
        over,
    };
    let frames = futures::stream::unfold(watched, |mut watched| async move {
        let update = watched.next().await?;
        let answer = rpc::body(&watched.id, update);
        Some((Ok::<_, Infallible>(Frame::default().data(answer.to_string())), watched))
    });
    Sse::new(frames).keep_alive(KeepAlive::default()).into_response()
}

async fn begin(app: &Shared, origin: &str, job: &Job) -> Result<(Feed, Value), RpcRefusal> {
    let feed = open(app, job, true).await?;
    // Read after the feed is open, so that no event is missed between the two.
    let job = latest(app, job).await?.ok_or_else(|| RpcRefusal::no_task(job.id.shown()))?;
    Ok((feed, task::shown(app, origin, &job, None).await?))
}

async fn open(app: &Shared, job: &Job, live: bool) -> Result<Feed, RpcRefusal> {
    let engagement = job.agent.as_ref().map(|side| side.engagement_id.clone());
    let source = Source {
        filter: EventFilter::Job(job.id.clone()),
        bell_name: engagement.as_ref().map_or_else(|| job.id.0.clone(), ToString::to_string),
        ended: false,
        live: engagement.filter(|_| live),
    };
    Ok(Feed::open(app.clone(), source, StreamCursor::default()).await?)
}

/// Returns the next frame. An error when it is time to query the delegates of a parked job: their questions are in
/// streams of their own.
async fn heard(feed: &mut Feed, job: &Job) -> Result<Option<StreamFrame>, Elapsed> {
    match job.state {
        JobState::Pending => tokio::time::timeout(LOOK, feed.next()).await,
        _ => Ok(feed.next().await),
    }
}

async fn latest(app: &Shared, job: &Job) -> Result<Option<Job>, RpcRefusal> {
    Ok(app.api.store.views.job(&job.id).await?)
}

/// Returns true if an event may have changed the state of its task.
fn moves(name: EventName) -> bool {
    ["job.", "review.", "lease."].iter().any(|area| name.as_str().starts_with(area))
}

/// One client's stream.
struct TaskStream {
    app: Shared,
    /// The address by which the client reaches this server.
    origin: String,
    /// The artifacts that the client knows.
    files: BTreeSet<String>,
    id: Value,
    job: Job,
    feed: Feed,
    /// The state that the client received last.
    state: Value,
    /// True if a part of the answer was sent.
    spoken: bool,
    updates: VecDeque<Value>,
    over: bool,
}

impl TaskStream {
    /// Returns the next frame; `None` when there are no more.
    async fn next(&mut self) -> Option<Result<Value, RpcRefusal>> {
        loop {
            if let Some(update) = self.updates.pop_front() {
                return Some(Ok(update));
            }
            if self.over {
                return None;
            }
            let looked = match heard(&mut self.feed, &self.job).await {
                Err(_) => self.look().await,
                Ok(said) => self.hear_of(said?).await,
            };
            if let Err(refusal) = looked {
                self.over = true;
                return Some(Err(refusal));
            }
        }
    }

    async fn hear_of(&mut self, said: StreamFrame) -> Result<(), RpcRefusal> {
        match said {
            StreamFrame::Delta(piece) => {
                self.hear(&piece);
                Ok(())
            }
            StreamFrame::Event(event) if event.name == EventName::ArtifactGenerated => {
                self.look_at_files().await
            }
            // The state that the client has received may be outdated.
            StreamFrame::Reset(_) => self.look().await,
            StreamFrame::Event(event) if moves(event.name) => self.look().await,
            StreamFrame::Event(_) => Ok(()),
        }
    }

    /// Adds a piece of the answer. A piece that begins anew replaces the earlier ones.
    fn hear(&mut self, piece: &Piece) {
        if piece.job != self.job.id || (!self.spoken && piece.offset != 0) {
            return;
        }
        let append = piece.offset != 0;
        self.spoken = true;
        self.updates.push_back(self.answer(json!([{"text": piece.text}]), append, false));
    }

    /// Sends files that the client does not know.
    async fn look_at_files(&mut self) -> Result<(), RpcRefusal> {
        for file in task::files(&self.app, &self.origin, &self.job).await? {
            let id = file["artifactId"].as_str().unwrap_or_default().to_owned();
            if self.files.insert(id) {
                self.updates.push_back(self.update(&file, false, true));
            }
        }
        Ok(())
    }

    /// Sends the changes.
    async fn look(&mut self) -> Result<(), RpcRefusal> {
        self.job =
            latest(&self.app, &self.job).await?.ok_or_else(|| RpcRefusal::no_task(self.job.id.shown()))?;
        let state = task::status(&self.app, &self.job).await?;
        if state["state"] == self.state["state"] && state["message"] == self.state["message"] {
            return Ok(());
        }
        self.look_at_files().await?;
        if let Some(artifact) = task::artifact(&self.job) {
            self.updates.push_back(self.answer(artifact["parts"].clone(), false, true));
        }
        let (task, context) = (&self.job.id, task::context(&self.job));
        self.updates
            .push_back(json!({"statusUpdate": {"taskId": task, "contextId": context, "status": state}}));
        self.over = task::rests(&state);
        self.state = state;
        Ok(())
    }

    fn answer(&self, parts: Value, append: bool, last: bool) -> Value {
        self.update(&json!({"artifactId": ANSWER, "name": ANSWER, "parts": parts}), append, last)
    }

    fn update(&self, artifact: &Value, append: bool, last: bool) -> Value {
        let (task, context) = (&self.job.id, task::context(&self.job));
        json!({"artifactUpdate": {"taskId": task, "contextId": context, "artifact": artifact,
                                  "append": append, "lastChunk": last}})
    }
}
