//! A proxy that notes which statements pass on their way to PostgreSQL.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::OwnedReadHalf;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::task::AbortOnDropHandle;

/// The proxy. It ends when it is dropped.
pub struct Wire {
    /// Where it listens.
    pub addr: SocketAddr,
    /// The statements that were run, each one round trip.
    pub said: Arc<Mutex<Vec<String>>>,
    _serving: AbortOnDropHandle<()>,
}

impl Wire {
    /// Starts one to `target`.
    pub async fn start(target: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let addr = listener.local_addr().expect("its address");
        let said: Arc<Mutex<Vec<String>>> = Arc::default();
        let noted = Arc::clone(&said);
        let serving = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let server = TcpStream::connect(target).await.expect("the server");
                let (client_in, mut client_out) = client.into_split();
                let (mut server_in, server_out) = server.into_split();
                tokio::spawn(async move { tokio::io::copy(&mut server_in, &mut client_out).await });
                tokio::spawn(forward(client_in, server_out, Arc::clone(&noted)));
            }
        });
        Self { addr, said, _serving: AbortOnDropHandle::new(serving) }
    }
}

/// Forwards what a client says, message by message.
async fn forward(
    mut client: OwnedReadHalf,
    mut server: impl AsyncWriteExt + Unpin,
    said: Arc<Mutex<Vec<String>>>,
) -> std::io::Result<()> {
    let note = |text: String| said.lock().unwrap_or_else(PoisonError::into_inner).push(text);
    let mut prepared: HashMap<Vec<u8>, String> = HashMap::new();
    let mut started = false;
    loop {
        // What opens a connection has no type: a wish for TLS, and the start-up message (its protocol is 3.0).
        let kind = if started { client.read_u8().await? } else { 0 };
        let length = client.read_u32().await?;
        let mut body = vec![0; length as usize - 4];
        client.read_exact(&mut body).await?;
        match kind {
            0 => started = body.starts_with(&[0, 3, 0, 0]),
            b'Q' => note(text(&body).0),
            b'P' => {
                let (name, rest) = text(&body);
                prepared.insert(name.into_bytes(), text(rest).0);
            }
            b'B' => {
                let (_portal, rest) = text(&body);
                note(prepared.get(text(rest).0.as_bytes()).cloned().unwrap_or_default());
            }
            _ => {}
        }
        if kind != 0 {
            server.write_u8(kind).await?;
        }
        server.write_u32(length).await?;
        server.write_all(&body).await?;
        server.flush().await?;
    }
}

/// A text that ends with a zero, and what follows it.
fn text(bytes: &[u8]) -> (String, &[u8]) {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    (String::from_utf8_lossy(&bytes[..end]).into_owned(), bytes.get(end + 1..).unwrap_or_default())
}
