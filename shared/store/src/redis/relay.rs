//! Carries hints to the other processes of a fleet and brings in theirs, over one channel of Redis.
//!
//! Nothing depends on it, because every process polls as well. A failure of Redis is logged once, and the relay
//! connects again by itself.

use super::live::LiveRelay;
use super::{PATIENCE, connect, open};
use crate::doorbell::{Outgoing, WeakDoorbell};
use crate::{Doorbell, Ring, StoreError};
use ::redis::aio::{MultiplexedConnection, PubSubStream};
use ::redis::{AsyncCommands, Client, ErrorKind, RedisError, RedisResult};
use backon::{BackoffBuilder, ExponentialBuilder};
use futures::StreamExt;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use turnstone_domain::Ids;

/// The channel of all processes.
const CHANNEL: &str = "turnstone:rings";
/// The most hints in one message.
const TOGETHER: usize = 1024;
/// The least time between two messages: under load hints gather meanwhile, and a lone hint is sent at once.
const GATHERED: Duration = Duration::from_millis(1);
/// How often an idle relay sends itself an empty message.
const HEARTBEAT: Duration = Duration::from_secs(5);
/// A connection that received nothing for this long is dead.
const SILENCE: Duration = Duration::from_secs(15);
/// The longest pause between two attempts to connect.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// The relay.
#[derive(Clone, Copy, Debug)]
pub struct RedisRelay;

#[derive(Debug, Serialize, Deserialize)]
struct Carried {
    from: String,
    rings: Vec<Ring>,
}

impl RedisRelay {
    /// Starts a relay for this doorbell, and for live text, on the current runtime. It ends when all other users of
    /// the doorbell have gone. Redis need not be there yet.
    ///
    /// # Errors
    /// [`StoreError::Misconfigured`] when `url` is no address of a Redis.
    pub fn start(url: &str, doorbell: &Doorbell, ids: &dyn Ids) -> Result<(), StoreError> {
        let client = open(url).map_err(StoreError::Misconfigured)?;
        let origin = ids.next();
        LiveRelay::start(client.clone(), doorbell.live(), origin.clone());
        let relay = Relay { client, doorbell: doorbell.downgrade(), origin };
        tokio::spawn(relay.run(doorbell.outgoing()));
        Ok(())
    }
}

/// Why a relay stops relaying.
enum End {
    Failed(RedisError),
    /// No other user of the doorbell is left.
    Unused,
}

impl From<RedisError> for End {
    fn from(error: RedisError) -> Self {
        Self::Failed(error)
    }
}

struct Relay {
    client: Client,
    doorbell: WeakDoorbell,
    /// The identity of this process on the channel.
    origin: String,
}

impl Relay {
    /// Connects and relays, again and again.
    async fn run(self, mut ringing: Outgoing) {
        let patience = ExponentialBuilder::default()
            .with_min_delay(Duration::from_millis(100))
            .with_max_delay(LONGEST_PAUSE)
            .without_max_times()
            .with_jitter();
        let (mut pauses, mut reported) = (patience.build(), false);
        while !ringing.is_closed() {
            let end = match self.connected().await {
                Ok((sending, hearing)) => {
                    if std::mem::take(&mut reported) {
                        tracing::info!(
                            "Redis is back; processes hear each other's doorbell through it again"
                        );
                    }
                    pauses = patience.build();
                    // Earlier hints of this process are old by now, and those of others were missed: every part
                    // looks once.
                    ringing.forget_hints();
                    self.doorbell.bring_in(Ring::Available);
                    self.doorbell.bring_in(Ring::Due);
                    tokio::select! {
                        end = self.carry_out(sending, &mut ringing) => end,
                        error = self.bring_in(hearing) => End::Failed(error),
                    }
                }
                Err(error) => End::Failed(error),
            };
            let End::Failed(error) = end else { return };
            if !std::mem::replace(&mut reported, true) {
                tracing::warn!(%error, "Redis does not answer; until it does, processes find work by looking for it");
            }
            tokio::time::sleep(pauses.next().unwrap_or(LONGEST_PAUSE)).await;
        }
    }

    async fn connected(&self) -> RedisResult<(MultiplexedConnection, PubSubStream)> {
        let connecting = async {
            let mut hearing = self.client.get_async_pubsub().await?;
            hearing.subscribe(CHANNEL).await?;
            Ok((connect(&self.client).await?, hearing.into_on_message()))
        };
        tokio::time::timeout(PATIENCE * 2, connecting).await.unwrap_or_else(|_| Err(silent()))
    }

    async fn carry_out(&self, mut sending: MultiplexedConnection, ringing: &mut Outgoing) -> End {
        loop {
            let rings = tokio::select! {
                rings = ringing.gather(TOGETHER, |_| 1) => rings,
                () = tokio::time::sleep(HEARTBEAT) => Some(Vec::new()),
            };
            let Some(rings) = rings else { return End::Unused };
            let carried = Carried { from: self.origin.clone(), rings };
            // Strings and lists of strings can always be written as JSON.
            let message = serde_json::to_string(&carried).unwrap_or_default();
            let sent: RedisResult<i64> = sending.publish(CHANNEL, message).await;
            if let Err(error) = sent {
                return error.into();
            }
            ringing.sent();
            tokio::time::sleep(GATHERED).await;
        }
    }

    async fn bring_in(&self, mut hearing: PubSubStream) -> RedisError {
        loop {
            match tokio::time::timeout(SILENCE, hearing.next()).await {
                Ok(Some(message)) => {
                    // Another version's message that cannot be read is no reason to stop listening.
                    let carried = serde_json::from_slice::<Carried>(message.get_payload_bytes()).ok();
                    let theirs = carried.filter(|carried| carried.from != self.origin);
                    for ring in theirs.into_iter().flat_map(|carried| carried.rings) {
                        self.doorbell.bring_in(ring);
                    }
                }
                Ok(None) => return RedisError::from((ErrorKind::Io, "the subscription ended")),
                Err(_) => return silent(),
            }
        }
    }
}

fn silent() -> RedisError {
    RedisError::from((ErrorKind::Io, "nothing was heard from it for some time"))
}
