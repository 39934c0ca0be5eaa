//! The older HTTP transport of MCP (2024-11-05): one stream of events from the server, and a POST for each message
//! to it. Its messages pass as lines, as those of a process do.

use super::message::readable;
use crate::tool::lines::lines;
use crate::tool::outbound;
use eventsource_stream::EventStream;
use futures::{Stream, StreamExt};
use reqwest::Client;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream};
use tokio_util::task::AbortOnDropHandle;
use url::Url;

/// The most bytes of a stream in all; beyond it the connection is made again.
const MOST_BYTES: usize = 1 << 30;
/// The bytes of messages that wait to be read.
const WAITING: usize = 64 * 1024;

/// The tasks that carry the messages; they end when this is dropped.
#[derive(Debug)]
pub(super) struct Carriers {
    _receiving: AbortOnDropHandle<()>,
    _sending: AbortOnDropHandle<()>,
}

/// Opens the stream of a server; returns its lines, and the writer of lines to it.
///
/// # Errors
/// A sentence without secrets: it cannot be reached, sends no events, or names an endpoint of another origin.
pub(super) async fn open(
    url: &str,
    headers: &HeaderMap,
    client: &Client,
    longest: usize,
) -> Result<(Carriers, DuplexStream, DuplexStream), String> {
    let base = Url::parse(url).map_err(|error| format!("its URL is none: {error}"))?;
    let request = client.get(base.clone()).headers(headers.clone()).header(ACCEPT, "text/event-stream");
    let response = request.send().await.map_err(|error| outbound::describe(&error))?;
    if !response.status().is_success() {
        return Err(format!("it answered with the status {}", response.status().as_u16()));
    }
    if outbound::media_type(&response) != "text/event-stream" {
        return Err("it answered with no stream of events".to_owned());
    }
    let mut events = messages(EventStream::new(Box::pin(lines(response, longest, MOST_BYTES))));
    let endpoint = loop {
        match events.next().await {
            Some((name, data)) if name == "endpoint" => break data,
            Some(_) => {}
            None => return Err("its stream ended before it named its endpoint".to_owned()),
        }
    };
    let endpoint = base.join(&endpoint).map_err(|_| "the endpoint that it names is no URL".to_owned())?;
    if endpoint.origin() != base.origin() {
        return Err("the endpoint that it names is at another origin".to_owned());
    }
    let (from_server, mut inbox) = tokio::io::duplex(WAITING);
    let (outbox, to_server) = tokio::io::duplex(WAITING);
    let receiving = async move {
        while let Some((name, data)) = events.next().await {
            let is_message = name.is_empty() || name == "message";
            let line = format!("{}\n", readable("", data.replace('\n', " ").into_bytes()));
            if is_message && inbox.write_all(line.as_bytes()).await.is_err() {
                return;
            }
        }
    };
    let (client, headers) = (client.clone(), headers.clone());
    let sending = async move {
        let mut lines = BufReader::new(outbox).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            let request = client.post(endpoint.clone()).headers(headers.clone());
            let sent = request.header(CONTENT_TYPE, "application/json").body(line).send().await;
            // Without the message there is no answer: the end of this task closes the connection.
            if !sent.is_ok_and(|response| response.status().is_success()) {
                return;
            }
        }
    };
    let carriers = Carriers {
        _receiving: AbortOnDropHandle::new(tokio::spawn(receiving)),
        _sending: AbortOnDropHandle::new(tokio::spawn(sending)),
    };
    Ok((carriers, from_server, to_server))
}

/// The names and data of the events of a stream, until it ends or breaks.
fn messages<S, E>(events: EventStream<S>) -> impl Stream<Item = (String, String)> + Unpin
where
    EventStream<S>: Stream<Item = Result<eventsource_stream::Event, E>> + Unpin,
{
    let whole = events.take_while(|event| std::future::ready(event.is_ok()));
    whole.filter_map(|event| std::future::ready(event.ok().map(|event| (event.event, event.data))))
}
