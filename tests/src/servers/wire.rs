//! A proxy before PostgreSQL that reads the protocol: it records the statements, and breaks a connection at
//! exactly one of them.

use crate::wait;
use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{oneshot, watch};
use tokio_util::task::AbortOnDropHandle;

/// The proxy. It ends when it is dropped.
pub struct Wire {
    /// Its address.
    pub addr: SocketAddr,
    shared: Arc<Shared>,
    _serving: AbortOnDropHandle<()>,
}

/// A statement that ran.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Said {
    /// The number of its connection. A connection runs one transaction at a time.
    pub connection: usize,
    /// Its text.
    pub text: String,
}

#[derive(Default)]
struct Shared {
    connections: AtomicUsize,
    said: Mutex<Vec<Said>>,
    faults: Mutex<VecDeque<Fault>>,
}

/// The fault of the next statement with all of these words in it.
struct Fault {
    words: &'static [&'static str],
    happens: Happens,
}

enum Happens {
    /// The server answers it, and the client never receives the answer.
    Answered(oneshot::Sender<Answer>),
    /// It does not reach the server.
    Delayed(oneshot::Sender<Lost>),
}

/// A statement that has not reached the server, and whose client has lost its connection.
pub struct Lost {
    statement: Vec<u8>,
    server: (OwnedReadHalf, OwnedWriteHalf),
}

/// The server's answer to a statement.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer {
    /// It ran, and its changes are committed.
    Done,
    /// It failed, with this error.
    Failed(String),
}

impl Lost {
    /// Sends the statement to the server, and returns its answer.
    pub async fn arrive(mut self) -> Answer {
        self.run().await.expect("an answer of the server")
    }

    async fn run(&mut self) -> io::Result<Answer> {
        self.server.1.write_all(&self.statement).await?;
        answer(&mut self.server.0).await
    }
}

impl Wire {
    /// Starts a proxy to `target`.
    pub async fn start(target: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let addr = listener.local_addr().expect("its address");
        let shared = Arc::new(Shared::default());
        let noted = Arc::clone(&shared);
        let serving = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let server = TcpStream::connect(target).await.expect("the server");
                for side in [&client, &server] {
                    // Small messages are sent at once, as they came.
                    let _ = side.set_nodelay(true);
                }
                tokio::spawn(connect(client, server, Arc::clone(&noted)));
            }
        });
        Self { addr, shared, _serving: AbortOnDropHandle::new(serving) }
    }

    /// Returns the texts of the statements that ran, each one round trip.
    pub fn said(&self) -> Vec<String> {
        self.shared.said().iter().map(|said| said.text.clone()).collect()
    }

    /// Returns the statements that ran, with their connections.
    pub fn said_by_connection(&self) -> Vec<Said> {
        self.shared.said().clone()
    }

    /// Clears the record.
    pub fn forget(&self) {
        self.shared.said().clear();
    }

    /// Lets the next statement with all of these words reach the server, and loses its answer with the
    /// connection. The future returns that answer.
    pub fn lose_the_answer(&self, words: &'static [&'static str]) -> impl Future<Output = Answer> + use<> {
        let (answered, answer) = oneshot::channel();
        self.shared.faults().push_back(Fault { words, happens: Happens::Answered(answered) });
        async move { wait::output("an answer is lost", answer).await.expect("an answer") }
    }

    /// Breaks the connection of the next statement with all of these words before it arrives, and holds it
    /// until it [arrives](Lost::arrive).
    pub fn delay(&self, words: &'static [&'static str]) -> impl Future<Output = Lost> + use<> {
        let (lost, found) = oneshot::channel();
        self.shared.faults().push_back(Fault { words, happens: Happens::Delayed(lost) });
        async move { wait::output("a statement is lost", found).await.expect("a statement") }
    }
}

impl Shared {
    fn said(&self) -> MutexGuard<'_, Vec<Said>> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn faults(&self) -> MutexGuard<'_, VecDeque<Fault>> {
        self.faults.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a statement; returns its fault.
    fn note(&self, connection: usize, text: String) -> Option<Fault> {
        let mut faults = self.faults();
        let meant = faults.iter().position(|fault| fault.words.iter().all(|words| text.contains(words)));
        self.said().push(Said { connection, text });
        meant.and_then(|at| faults.remove(at))
    }
}

/// Forwards a connection. When a statement of it is lost, the client loses the connection and the server does
/// not.
async fn connect(client: TcpStream, server: TcpStream, shared: Arc<Shared>) {
    let (mut client_in, client_out) = client.into_split();
    let (server_in, mut server_out) = server.into_split();
    let (cut, is_cut) = watch::channel(false);
    let back = tokio::spawn(back(server_in, client_out, is_cut));
    let Ok((fault, statement)) = forward(&mut client_in, &mut server_out, &shared).await else { return };
    cut.send_replace(true);
    let Ok(Some((server_in, client_out))) = back.await else { return };
    let mut lost = Lost { statement, server: (server_in, server_out) };
    match fault.happens {
        Happens::Answered(answered) => {
            let answer = lost.run().await;
            drop((client_in, client_out));
            let _ = answer.map(|answer| answered.send(answer));
        }
        Happens::Delayed(delayed) => {
            drop((client_in, client_out));
            let _ = delayed.send(lost);
        }
    }
}

/// Forwards a server's messages until the connection is cut; then returns both sides. No message is in
/// transit at that time, because the client waits for every answer.
async fn back(
    mut server: OwnedReadHalf,
    mut client: OwnedWriteHalf,
    mut is_cut: watch::Receiver<bool>,
) -> Option<(OwnedReadHalf, OwnedWriteHalf)> {
    let mut buffer = vec![0; 16 * 1024];
    loop {
        let count = tokio::select! {
            biased;
            cut = async { is_cut.wait_for(|cut| *cut).await.is_ok() } => {
                return cut.then_some((server, client));
            }
            count = server.read(&mut buffer) => count.ok().filter(|count| *count > 0)?,
        };
        client.write_all(&buffer[..count]).await.ok()?;
    }
}

/// Forwards a client's messages, one by one, until a statement is lost; returns that statement.
async fn forward(
    client: &mut OwnedReadHalf,
    server: &mut OwnedWriteHalf,
    shared: &Shared,
) -> io::Result<(Fault, Vec<u8>)> {
    let connection = shared.connections.fetch_add(1, Ordering::Relaxed);
    let mut prepared: HashMap<Vec<u8>, String> = HashMap::new();
    let mut started = false;
    let mut lost: Option<(Fault, Vec<u8>)> = None;
    loop {
        // The first messages of a connection have no type: a request for TLS, and the start-up message (its
        // protocol is 3.0).
        let kind = if started { client.read_u8().await? } else { 0 };
        let length = client.read_u32().await?;
        let mut body = vec![0; length as usize - 4];
        client.read_exact(&mut body).await?;
        let mut message = Vec::with_capacity(body.len() + 5);
        message.extend((kind != 0).then_some(kind));
        message.extend(length.to_be_bytes());
        message.extend(&body);
        let fault = match kind {
            0 => {
                started = body.starts_with(&[0, 3, 0, 0]);
                None
            }
            b'Q' => shared.note(connection, text(&body).0),
            b'P' => {
                let (name, rest) = text(&body);
                prepared.insert(name.into_bytes(), text(rest).0);
                None
            }
            b'B' => {
                let (_portal, rest) = text(&body);
                let statement = prepared.get(text(rest).0.as_bytes()).cloned().unwrap_or_default();
                shared.note(connection, statement)
            }
            _ => None,
        };
        if let Some(fault) = fault {
            lost = Some((fault, Vec::new()));
        }
        let Some((fault, mut statement)) = lost.take() else {
            server.write_all(&message).await?;
            continue;
        };
        statement.extend(message);
        // The message that ends a statement.
        if matches!(kind, b'Q' | b'S') {
            return Ok((fault, statement));
        }
        lost = Some((fault, statement));
    }
}

/// Reads an answer to its end.
async fn answer(server: &mut OwnedReadHalf) -> io::Result<Answer> {
    let mut answer = Answer::Done;
    loop {
        let kind = server.read_u8().await?;
        let length = server.read_u32().await?;
        let mut body = vec![0; length as usize - 4];
        server.read_exact(&mut body).await?;
        match kind {
            b'E' => answer = Answer::Failed(String::from_utf8_lossy(&body).replace('\0', " ")),
            b'Z' => return Ok(answer),
            _ => {}
        }
    }
}

/// Returns a text that ends with a zero, and the bytes after it.
fn text(bytes: &[u8]) -> (String, &[u8]) {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    (String::from_utf8_lossy(&bytes[..end]).into_owned(), bytes.get(end + 1..).unwrap_or_default())
}
