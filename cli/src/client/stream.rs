//! A job's events as they happen. A broken stream is resumed after the last event that arrived.

use super::Client;
use super::outage::Outage;
use crate::failure::Failure;
use backon::{BackoffBuilder as _, ExponentialBuilder};
use eventsource_stream::{EventStreamError, Eventsource as _};
use futures::StreamExt as _;
use reqwest::Method;
use reqwest::header::ACCEPT;
use serde_json::Value;
use std::io;
use std::ops::ControlFlow;
use std::time::Duration;
use turnstone_api::answers::State;
use turnstone_domain::JobState;
use turnstone_domain::event::EventName;
use turnstone_ojs::JobBody;

/// The first pause before a broken stream is resumed.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// The most failures in a row without a new event.
const MOST_FAILURES: usize = 12;

/// How watching a job ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ending {
    /// The job was completed.
    Completed,
    /// It was discarded, cancelled or expired.
    Unsuccessful,
}

impl Ending {
    fn of_state(state: JobState) -> Option<Self> {
        match state {
            JobState::Completed => Some(Self::Completed),
            state if state.is_terminal() => Some(Self::Unsuccessful),
            _ => None,
        }
    }
}

/// The progress of watching a job.
#[derive(Default)]
struct Progress {
    /// The id of the last event that arrived.
    cursor: String,
    /// True if the server has answered at all.
    connected: bool,
    /// True if it answered the last request.
    answers: bool,
    outage: Outage,
    /// How many events have arrived.
    arrived: u64,
    /// True if one of them ends the job, unless it was tried again.
    at_end: bool,
}

impl Client {
    /// Gives every event of a job to `seen`, from the first one on, until the job has ended. A job that was tried again
    /// after its end has not ended: its state decides.
    ///
    /// # Errors
    /// There is no such job, the server cannot be reached any more, or `seen` failed.
    pub async fn watch(
        &self,
        job_id: &str,
        mut seen: impl FnMut(&Value) -> io::Result<()>,
    ) -> anyhow::Result<Ending> {
        let mut progress = Progress::default();
        let mut pauses = pauses();
        let mut seen = |_: &str, event: &Value| seen(event).map(ControlFlow::Continue);
        loop {
            let arrived_before = progress.arrived;
            let path = ["ojs", "v1", "jobs", job_id, "events"];
            let followed = self.follow(&path, &mut progress, &mut seen).await;
            let broke = followed.is_err();
            if let Err(error) = followed {
                self.passing(error, &mut progress)?;
            }
            // After an event that ends the job, and when no more events come, the job's state decides. A server that
            // stops in order ends its streams too, and the rest of the events follows.
            let at_end = progress.at_end || (!broke && progress.arrived == arrived_before);
            if at_end && let Some(ending) = self.ended(job_id).await? {
                return Ok(ending);
            }
            if progress.arrived > arrived_before {
                pauses = self::pauses();
            }
            let Some(pause) = pauses.next() else { return Err(self.given_up(job_id).into()) };
            tokio::time::sleep(pause).await;
        }
    }

    /// Gives every event of an engagement after `cursor`, and every `delta` of an answer that is being written, to `seen`
    /// with its name. Returns true when `seen` stopped it, and false when the engagement has ended. The cursor moves with
    /// the events, so that a later call resumes.
    ///
    /// # Errors
    /// There is no such engagement, the server cannot be reached any more, or `seen` failed.
    pub async fn follow_engagement(
        &self,
        id: &str,
        cursor: &mut String,
        mut seen: impl FnMut(&str, &Value) -> io::Result<ControlFlow<()>>,
    ) -> anyhow::Result<bool> {
        let mut progress = Progress { cursor: cursor.clone(), ..Progress::default() };
        let mut pauses = pauses();
        let path = ["engagements", id, "events"];
        loop {
            let arrived_before = progress.arrived;
            let followed = self.follow(&path, &mut progress, &mut seen).await;
            cursor.clone_from(&progress.cursor);
            let broke = followed.is_err();
            match followed {
                Ok(ControlFlow::Break(())) => return Ok(true),
                Ok(ControlFlow::Continue(())) => {}
                Err(error) => self.passing(error, &mut progress)?,
            }
            let at_end = progress.at_end || (!broke && progress.arrived == arrived_before);
            if at_end && self.has_ended(id).await? {
                return Ok(false);
            }
            if progress.arrived > arrived_before {
                pauses = self::pauses();
            }
            let Some(pause) = pauses.next() else {
                let failure =
                    Failure::failed(format!("the events of engagement {id} stopped before its end"));
                let hint =
                    format!("it is not affected; `turnstone engagement follow {id}` takes it up again");
                return Err(failure.hint(hint).into());
            };
            tokio::time::sleep(pause).await;
        }
    }

    /// Returns true if the job that works on the newest input of an engagement has ended.
    async fn has_ended(&self, id: &str) -> Result<bool, Failure> {
        match self.get(&["engagements", id], &[]).await {
            Ok(State { job_id, .. }) => Ok(self.ended(&job_id).await?.is_some()),
            Err(failure) if failure.is_passing() => Ok(false),
            Err(failure) => Err(failure),
        }
    }

    /// One connection, from after the last event on, until the server ends it or `seen` stops it.
    async fn follow(
        &self,
        path: &[&str],
        progress: &mut Progress,
        seen: &mut impl FnMut(&str, &Value) -> io::Result<ControlFlow<()>>,
    ) -> anyhow::Result<ControlFlow<()>> {
        let mut request = self.request(Method::GET, path, &[]);
        request = request.header(ACCEPT, "text/event-stream");
        if !progress.cursor.is_empty() {
            request = request.header("Last-Event-ID", progress.cursor.as_str());
        }
        progress.answers = false;
        let mut stream = self.send(request).await?.bytes_stream().eventsource();
        (progress.connected, progress.answers) = (true, true);
        progress.outage.is_over(self);
        while let Some(item) = stream.next().await {
            let event = item.map_err(|error| match error {
                EventStreamError::Transport(error) => self.unreachable(&error),
                other => {
                    Failure::failed(format!("the events of {} cannot be understood: {other}", self.address()))
                }
            })?;
            let Ok(data) = serde_json::from_str::<Value>(&event.data) else { continue };
            if !event.id.is_empty() {
                progress.cursor.clone_from(&event.id);
            }
            progress.arrived += 1;
            if event.event == "reset" {
                // The database does not have what was shown, such as after a failover.
                self.output.remark("the server lost some of these events; the stream begins anew");
                progress.at_end = false;
                continue;
            }
            progress.at_end |= EventName::parse(&event.event).is_some_and(EventName::ends_job);
            if seen(&event.event, &data)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Ignores an error when resuming the stream may help. A stream that breaks is no outage: the server may answer at
    /// once.
    fn passing(&self, error: anyhow::Error, progress: &mut Progress) -> anyhow::Result<()> {
        match error.downcast_ref::<Failure>() {
            Some(failure) if progress.connected && failure.is_passing() => {
                if !progress.answers {
                    progress.outage.begins(self, failure);
                }
                self.output.detail(&format!("{failure}; resuming after event {}", progress.cursor));
                Ok(())
            }
            _ => Err(error),
        }
    }

    /// Returns how the job ended, if it did. The stream of a job whose events were pruned ends without an event of its
    /// end.
    async fn ended(&self, job_id: &str) -> Result<Option<Ending>, Failure> {
        match self.member(&["ojs", "v1", "jobs", job_id], &[], "job").await {
            Ok(JobBody { state, .. }) => Ok(state.known().and_then(Ending::of_state)),
            Err(failure) if failure.is_passing() => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    fn given_up(&self, job_id: &str) -> Failure {
        Failure::failed(format!("the events of {} stopped before job {job_id} ended", self.address()))
            .hint(format!("the job is not affected; `turnstone job watch {job_id}` takes it up again"))
    }
}

fn pauses() -> impl Iterator<Item = Duration> {
    ExponentialBuilder::default()
        .with_min_delay(FIRST_PAUSE)
        .with_max_delay(LONGEST_PAUSE)
        .with_max_times(MOST_FAILURES)
        .with_jitter()
        .build()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::job::sample;
    use crate::config::ClientConfig;
    use crate::failure::Exit;
    use crate::output::Output;
    use serde_json::json;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;
    use tokio::task::JoinHandle;

    /// Starts a server that sends one response per connection and records the requests.
    async fn server(answers: Vec<String>) -> (Client, JoinHandle<Vec<String>>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let requested = tokio::spawn(async move {
            let mut requested = Vec::new();
            for answer in answers {
                let (mut socket, _) = listener.accept().await.unwrap();
                let mut request = Vec::new();
                while !request.ends_with(b"\r\n\r\n") {
                    request.push(socket.read_u8().await.unwrap());
                }
                requested.push(String::from_utf8(request).unwrap().to_ascii_lowercase());
                socket.write_all(answer.as_bytes()).await.unwrap();
            }
            requested
        });
        let output = Output { quiet: true, ..Output::default() };
        (Client::new(&ClientConfig { url, api_key: None }, output).unwrap(), requested)
    }

    fn event(seq: u32, name: &str) -> String {
        format!("id: {seq}\nevent: {name}\ndata: {{\"seq\":{seq},\"name\":\"{name}\"}}\n\n")
    }

    /// Returns a stream that claims to be longer than it is, so that its end is a broken connection.
    fn broken_off(events: &str) -> String {
        format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 9999\r\n\r\n{events}")
    }

    fn job(state: &str) -> String {
        json!({"job": sample(&json!({"id": "j", "state": state}))}).to_string()
    }

    fn complete(status: &str, body: &str) -> String {
        format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}", body.len())
    }

    #[tokio::test]
    async fn a_broken_stream_resumes_after_the_last_event() {
        let first = broken_off(&(event(1, "job.enqueued") + &event(2, "job.started")));
        let last = complete("200 OK", &event(3, "job.completed"));
        let (client, requested) = server(vec![first, last, complete("200 OK", &job("completed"))]).await;
        let mut seen = Vec::new();
        let ending = client
            .watch("j", |event| {
                seen.push(event["seq"].as_i64().unwrap());
                Ok(())
            })
            .await
            .unwrap();
        assert_eq!((ending, seen), (Ending::Completed, vec![1, 2, 3]));
        let requested = requested.await.unwrap();
        assert!(
            requested[0].starts_with("get /ojs/v1/jobs/j/events ") && !requested[0].contains("last-event-id"),
            "{requested:?}"
        );
        assert!(requested[1].contains("last-event-id: 2\r\n"), "{requested:?}");
    }

    #[tokio::test]
    async fn a_stream_that_ends_without_a_word_is_judged_by_the_jobs_state() {
        let (client, _asked) =
            server(vec![complete("200 OK", ""), complete("200 OK", &job("discarded"))]).await;
        assert_eq!(client.watch("j", |_| Ok(())).await.unwrap(), Ending::Unsuccessful);
    }

    #[tokio::test]
    async fn a_stream_that_ends_early_is_read_to_its_end_although_the_job_has_ended() {
        let first = complete("200 OK", &event(1, "job.started"));
        let rest = complete("200 OK", &event(2, "job.cancelled"));
        let (client, requested) = server(vec![first, rest, complete("200 OK", &job("cancelled"))]).await;
        assert_eq!(client.watch("j", |_| Ok(())).await.unwrap(), Ending::Unsuccessful);
        assert!(requested.await.unwrap()[1].contains("last-event-id: 1\r\n"));
    }

    #[tokio::test]
    async fn a_job_that_was_tried_again_is_followed_past_its_first_end() {
        let history = event(1, "job.discarded") + &event(2, "job.available");
        let again = complete("200 OK", &event(3, "job.discarded"));
        let rest = complete("200 OK", &event(4, "job.completed"));
        let answers = vec![
            complete("200 OK", &history),
            complete("200 OK", &job("active")),
            again,
            complete("200 OK", &job("active")),
            rest,
            complete("200 OK", &job("completed")),
        ];
        let (client, requested) = server(answers).await;
        assert_eq!(client.watch("j", |_| Ok(())).await.unwrap(), Ending::Completed);
        assert_eq!(requested.await.unwrap().len(), 6);
    }

    #[tokio::test]
    async fn a_reset_stream_continues_where_it_says() {
        let reset = "id: 0\nevent: reset\ndata: {\"code\":\"cursor_lost\",\"begin\":\"0\"}\n\n";
        let first = broken_off(&(event(7, "job.completed") + reset));
        let last = complete("200 OK", &(event(1, "job.enqueued") + &event(2, "job.completed")));
        let (client, requested) = server(vec![first, last, complete("200 OK", &job("completed"))]).await;
        let mut seen = Vec::new();
        let ending = client.watch("j", |event| {
            seen.push(event["seq"].as_i64().unwrap());
            Ok(())
        });
        assert_eq!(ending.await.unwrap(), Ending::Completed);
        assert_eq!(seen, [7, 1, 2]);
        assert!(requested.await.unwrap()[1].contains("last-event-id: 0\r\n"));
    }

    #[tokio::test]
    async fn an_unknown_job_is_not_waited_for() {
        let (client, _asked) =
            server(vec![complete("404 Not Found", r#"{"error":{"code":"not_found","message":"No."}}"#)])
                .await;
        let error = client.watch("j", |_| Ok(())).await.unwrap_err();
        assert_eq!(error.downcast::<Failure>().unwrap().exit, Exit::NotFound);
    }
}
