//! Carries the text of models to the processes that have a listener for it. Redis has one channel per engagement,
//! which is subscribed to only while there is a listener.
//!
//! Nothing depends on it, and nothing is kept: while Redis is away, listeners in other processes see the durable
//! events only.

use super::{PATIENCE, connect};
use crate::live::{Live, Piece, WeakLive};
use ::redis::aio::{MultiplexedConnection, PubSubSink, PubSubStream};
use ::redis::{Client, ErrorKind, RedisError, RedisResult};
use futures::StreamExt;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::future::Future;
use std::time::Duration;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::sync::watch;
use turnstone_domain::EngagementId;

/// The prefix of the channels; the engagement follows.
const CHANNEL: &str = "turnstone:live:";
/// The most messages that go together.
const TOGETHER: usize = 256;
/// The longest text that pieces are joined to, in bytes.
const JOINED: usize = 4096;
/// The least time between two sendings: a model that speaks fast sends fewer, longer pieces.
const GATHERED: Duration = Duration::from_millis(20);
/// How often an idle connection is tried.
const HEARTBEAT: Duration = Duration::from_secs(5);
/// The pause before Redis is tried again. The relay of hints logs when Redis is away.
const PAUSE: Duration = Duration::from_secs(2);

#[derive(Serialize, Deserialize)]
struct Carried {
    from: String,
    piece: Piece,
}

/// The relay of one process.
pub(super) struct LiveRelay {
    client: Client,
    live: WeakLive,
    /// The identity of this process.
    origin: String,
}

impl LiveRelay {
    /// Starts a relay on the current runtime. It ends when all other users of `live` have gone.
    pub(super) fn start(client: Client, live: &Live, origin: String) {
        let relay = Self { client, live: live.downgrade(), origin };
        tokio::spawn(relay.run(live.outgoing(), live.changes()));
    }

    async fn run(self, mut said: Receiver<Piece>, mut changes: watch::Receiver<u64>) {
        while !said.is_closed() {
            if let Ok((sending, sink, hearing)) = self.connected().await {
                // What was said before is old by now.
                said = said.resubscribe();
                tokio::select! {
                    () = self.carry_out(sending, &mut said) => {}
                    () = self.bring_in(hearing) => {}
                    _ = self.follow(sink, &mut changes) => {}
                }
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn connected(&self) -> RedisResult<(MultiplexedConnection, PubSubSink, PubSubStream)> {
        within(async {
            let (sink, hearing) = self.client.get_async_pubsub().await?.split();
            Ok((connect(&self.client).await?, sink, hearing))
        })
        .await
    }

    /// Sends the pieces of this process, until Redis fails or no speaker is left.
    async fn carry_out(&self, mut sending: MultiplexedConnection, said: &mut Receiver<Piece>) {
        while let Some(pieces) = gather(said).await {
            let mut sendings = ::redis::pipe();
            for piece in pieces {
                let channel = format!("{CHANNEL}{}", piece.engagement);
                let carried = Carried { from: self.origin.clone(), piece };
                // Strings and numbers can always be written as JSON.
                let message = serde_json::to_string(&carried).unwrap_or_default();
                sendings.publish(channel, message).ignore();
            }
            let sent: RedisResult<()> = sendings.query_async(&mut sending).await;
            if sent.is_err() {
                return;
            }
            tokio::time::sleep(GATHERED).await;
        }
    }

    async fn bring_in(&self, mut hearing: PubSubStream) {
        while let Some(message) = hearing.next().await {
            // Another version's message that cannot be read is no reason to stop listening.
            let carried = serde_json::from_slice::<Carried>(message.get_payload_bytes()).ok();
            if let Some(carried) = carried.filter(|carried| carried.from != self.origin) {
                self.live.bring_in(carried.piece);
            }
        }
    }

    /// Subscribes to what is listened to in this process, and to nothing else.
    async fn follow(&self, mut sink: PubSubSink, changes: &mut watch::Receiver<u64>) -> RedisResult<()> {
        let mut followed: HashSet<EngagementId> = HashSet::new();
        loop {
            changes.mark_unchanged();
            let wanted = self.live.listened();
            for engagement in wanted.difference(&followed) {
                within(sink.subscribe(format!("{CHANNEL}{engagement}"))).await?;
            }
            for engagement in followed.difference(&wanted) {
                within(sink.unsubscribe(format!("{CHANNEL}{engagement}"))).await?;
            }
            followed = wanted;
            tokio::select! {
                changed = changes.changed() => {
                    if changed.is_err() {
                        return Ok(());
                    }
                }
                () = tokio::time::sleep(HEARTBEAT) => within(sink.ping::<()>()).await?,
            }
        }
    }
}

async fn within<T>(asking: impl Future<Output = RedisResult<T>>) -> RedisResult<T> {
    let silent = || RedisError::from((ErrorKind::Io, "it does not answer"));
    tokio::time::timeout(PATIENCE, asking).await.unwrap_or_else(|_| Err(silent()))
}

/// Waits for a piece and takes along what has gathered; consecutive pieces of one answer become one. Returns `None`
/// when no speaker is left.
async fn gather(said: &mut Receiver<Piece>) -> Option<Vec<Piece>> {
    let mut pieces: Vec<Piece> = Vec::new();
    loop {
        match said.recv().await {
            Ok(piece) => break pieces.push(piece),
            Err(RecvError::Lagged(_)) => {}
            Err(RecvError::Closed) => return None,
        }
    }
    while pieces.len() < TOGETHER {
        match said.try_recv() {
            Ok(piece) => join(&mut pieces, piece),
            Err(TryRecvError::Lagged(_)) => {}
            Err(TryRecvError::Empty | TryRecvError::Closed) => break,
        }
    }
    Some(pieces)
}

fn join(pieces: &mut Vec<Piece>, piece: Piece) {
    let before = pieces.iter_mut().rev().find(|before| before.engagement == piece.engagement);
    match before {
        Some(before)
            if (&before.job, before.turn) == (&piece.job, piece.turn)
                && before.offset + length(&before.text) == piece.offset
                && before.text.len() + piece.text.len() <= JOINED =>
        {
            before.text.push_str(&piece.text);
        }
        _ => pieces.push(piece),
    }
}

fn length(text: &str) -> u64 {
    u64::try_from(text.chars().count()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn pieces_that_follow_one_another_go_as_one() {
        let live = Live::default();
        let mut said = live.outgoing();
        let speaker = |engagement: &str| live.speaker(engagement.into(), "j".into(), 1);
        let (a, b) = (speaker("a"), speaker("b"));
        for (speaker, text) in [(&a, "äb"), (&b, "x"), (&a, "c"), (&b, "y"), (&speaker("a"), "anew")] {
            speaker.say(text);
        }
        let pieces = gather(&mut said).await.unwrap();
        let reported: Vec<_> =
            pieces.iter().map(|p| (p.engagement.as_str(), p.offset, p.text.as_str())).collect();
        assert_eq!(reported, [("a", 0, "äbc"), ("b", 0, "xy"), ("a", 0, "anew")]);
        drop((a, b, live));
        assert_eq!(gather(&mut said).await, None);
    }
}
