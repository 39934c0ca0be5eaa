//! Ten thousand clients that follow runs of the Agent Protocol at one api process: what each of them takes, and how late events
//! come to them.

use crate::Pace;
use crate::figures::Figure;
use crate::site::{Process, Site, now};
use crate::stage::PATIENCE;
use futures::StreamExt as _;
use serde::Deserialize;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use turnstone_domain::Timestamp;
use turnstone_tests::{ModelServer, Place, Reply};

/// Clients that connect at the same time.
const CONNECTING: usize = 100;
/// Clients at once.
const READERS: usize = 10_000;
/// Clients before anything is measured, so that what is needed only once is not counted.
const BEFORE: usize = 64;
/// Clients of each run, when there are many runs.
const OF_EACH: usize = 10;
const AGENT: &str = "kind: \"openagentspec:v1/agent\"\nname: bench\ndescription: An agent.\nintent: You answer.\nowner: benches\n";

/// Measures it.
pub async fn measure(pace: Pace) -> Vec<Figure> {
    let readers = if pace.trial { 200 } else { READERS };
    enough_files(readers);
    let mut figures = at(readers, 1, pace).await;
    figures.extend(at(readers, readers / OF_EACH, pace).await);
    figures
}

/// Each client is an open file here and at the api, which inherits the limit.
fn enough_files(readers: usize) {
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"));
    let most = line.and_then(|line| line.split_ascii_whitespace().next()?.parse::<usize>().ok());
    let wanted = readers + 1_000;
    assert!(most.is_none_or(|most| most >= wanted), "this needs `ulimit -n {wanted}`");
}

/// The fleet, and the runs that are followed.
struct Scene {
    site: Site,
    api: Process,
    address: String,
    runs: Vec<String>,
    _models: ModelServer,
    _others: [Process; 2],
}

impl Scene {
    async fn new(runs: usize) -> Self {
        let models =
            ModelServer::start(|_| Reply::text("It is done, and this is what you wanted to know.")).await;
        let site = Site::start(&[]).await;
        let (folder, url) = (site.folder("worker"), Some(site.database.url.as_str()));
        let settings = format!(
            "[providers.bench]\nkind = 'openai'\nbase_url = '{}'\n[models]\ndefault_model = 'm'\n",
            models.url
        );
        std::fs::write(folder.join("turnstone.toml"), settings).expect("a file");
        let scheduler = site.scheduler().await;
        let worker = Process::start(&folder, &["worker", "--name", "only", "--slots", "256"], url).await;
        let folder = site.folder("api");
        // More than an api process takes by default.
        let most = READERS + 100;
        let settings = format!("[server]\nmax_connections = {most}\n[caps]\nstreams = {most}\n");
        std::fs::write(folder.join("turnstone.toml"), settings).expect("a file");
        let api = Process::start(&folder, &["api", "--bind", "127.0.0.1:0"], url).await;
        let address = api.said.rsplit('/').next().unwrap_or_default().to_owned();
        let mut scene =
            Self { site, api, address, runs: Vec::new(), _models: models, _others: [scheduler, worker] };
        scene.send("POST", "/agents", "application/yaml", AGENT).await;
        for _ in 0..runs {
            let answer = scene.ask(None).await;
            scene.runs.push(header(&answer, "x-run-id"));
        }
        let place = Place::from(&scene.site.database);
        let (began, all) = (Instant::now(), i64::try_from(runs).unwrap_or(i64::MAX));
        while place.number("SELECT count(*) FROM jobs WHERE state = 'completed'").await < all {
            assert!(began.elapsed() < PATIENCE, "the runs do not end");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        scene
    }

    async fn send(&self, method: &str, path: &str, kind: &str, body: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).await.expect("the api listens");
        let host = &self.address;
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(request.as_bytes()).await.expect("the api reads");
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.expect("the api answers");
        let answer = String::from_utf8_lossy(&answer).into_owned();
        assert!(answer.starts_with("HTTP/1.1 2"), "{answer}");
        answer
    }

    /// Sends a request: the next one of a run, or one that begins a run.
    async fn ask(&self, run: Option<&str>) -> String {
        let run = run.map_or(String::new(), |run| format!(", \"run_id\": \"{run}\""));
        let body = format!("{{\"input\": \"and now?\"{run}}}");
        self.send("POST", "/agents/bench/process", "application/json", &body).await
    }

    /// Follows the runs with so many clients; returns when all of them have read what there was.
    async fn follow(&self, clients: usize) -> Audience {
        let (ended, over) = (Arc::new(AtomicUsize::new(0)), watch::channel(false).0);
        let opening = futures::stream::iter(0..clients).map(|number| {
            let run = &self.runs[number % self.runs.len()];
            open(&self.address, run, Arc::clone(&ended), over.subscribe())
        });
        let reading: Vec<_> = opening.buffer_unordered(CONNECTING).collect().await;
        let audience = Audience { ended, over, reading };
        audience.until(clients).await;
        audience
    }
}

fn header(answer: &str, name: &str) -> String {
    let line = answer.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.unwrap_or_else(|| panic!("no {name}: {answer}")).trim().to_owned()
}

/// Clients, and what they have seen.
struct Audience {
    /// Ends of requests, of all clients together.
    ended: Arc<AtomicUsize>,
    over: watch::Sender<bool>,
    reading: Vec<JoinHandle<Vec<f64>>>,
}

impl Audience {
    async fn until(&self, ended: usize) {
        let began = Instant::now();
        while self.ended.load(Ordering::Relaxed) < ended {
            let seen = self.ended.load(Ordering::Relaxed);
            assert!(began.elapsed() < PATIENCE, "{seen} of {ended} ends were seen");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Lets all go; by how much each event was late.
    async fn leave(self) -> Vec<f64> {
        self.over.send_replace(true);
        let mut late = Vec::new();
        for reading in self.reading {
            late.extend(reading.await.expect("a client"));
        }
        late
    }
}

#[derive(Deserialize)]
struct Glance<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    timestamp: &'a str,
}

/// One client: counts the ends of requests, and notes by how much each event was late; what happened before is not late.
async fn open(
    address: &str,
    run: &str,
    ended: Arc<AtomicUsize>,
    mut over: watch::Receiver<bool>,
) -> JoinHandle<Vec<f64>> {
    let mut stream = TcpStream::connect(address).await.expect("the api takes clients");
    let request = format!(
        "GET /agents/bench/getevents/{run}?stream=true HTTP/1.1\r\nHost: {address}\r\nAccept: text/event-stream\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await.expect("the api reads");
    let came = now();
    tokio::spawn(async move {
        let (mut late, mut line, mut buffer) = (Vec::new(), Vec::new(), [0; 2048]);
        let mut status = [0; 12];
        stream.read_exact(&mut status).await.expect("an answer");
        assert_eq!(String::from_utf8_lossy(&status), "HTTP/1.1 200");
        loop {
            let read = tokio::select! {
                read = stream.read(&mut buffer) => read.expect("the stream continues"),
                _ = over.changed() => return late,
            };
            assert!(read > 0, "the stream ended");
            for byte in &buffer[..read] {
                if *byte != b'\n' {
                    line.push(*byte);
                    continue;
                }
                let event = line
                    .strip_prefix(b"data:")
                    .and_then(|data| serde_json::from_slice::<Glance<'_>>(data).ok());
                if let Some(Glance { kind, timestamp }) = event {
                    let at = Timestamp::parse_rfc3339(timestamp).map_or(0, |at| at.0);
                    if at > came {
                        late.push((now() - at) as f64);
                    }
                    ended.fetch_add(usize::from(kind == "request_completed"), Ordering::Relaxed);
                }
                line.clear();
            }
        }
    })
}

async fn at(readers: usize, runs: usize, pace: Pace) -> Vec<Figure> {
    let scene = Scene::new(runs).await;
    scene.follow(BEFORE).await.leave().await;
    let before = scene.api.resident_kb();
    let came = Instant::now();
    let audience = scene.follow(readers).await;
    let came = came.elapsed().as_secs_f64();
    tokio::time::sleep(pace.seconds(2)).await;
    let (watched, ticks) = (Instant::now(), scene.api.processor_s());
    // Long enough for every stream to send a sign of life, and for the allocator to return what the arrival took.
    tokio::time::sleep(pace.seconds(20)).await;
    let busy = (scene.api.processor_s() - ticks) / watched.elapsed().as_secs_f64() * 100.0;
    let memory = (scene.api.resident_kb() - before) / readers as f64;

    // One run in twenty is asked in each round, and each of its clients has to see the end.
    let (of_each, requested) = (readers / runs, (runs / 20).max(1));
    let mut seen = readers;
    for round in 0..pace.times(20) {
        for run in (0..runs).cycle().skip(round * requested).take(requested) {
            scene.ask(Some(&scene.runs[run])).await;
        }
        seen += requested * of_each;
        audience.until(seen).await;
        tokio::time::sleep(pace.seconds(1) / 2).await;
    }
    let mut late = audience.leave().await;
    late.sort_by(f64::total_cmp);
    let share = |share: f64| late.get((late.len() as f64 * share) as usize).copied().unwrap_or_default();
    let of = if runs == 1 { "one run".to_owned() } else { format!("{runs} runs, {of_each} each") };
    let name = |what: &str| format!("{readers} readers of {of}: {what}");
    vec![
        Figure::of(name("memory of the api for each"), "KB", vec![memory]),
        Figure::of(
            name("from the first that comes to the last that has read what there was"),
            "s",
            vec![came],
        ),
        Figure::of(name("processor of the api while nothing happens"), "% of a core", vec![busy]),
        Figure::of(name("delay of an event, p50"), "ms", vec![share(0.5)]),
        Figure::of(name("delay of an event, p99"), "ms", vec![share(0.99)]),
        Figure::of(name("events that were read"), "", vec![late.len() as f64]),
    ]
}
