//! The doorbell between processes: `NOTIFY` sends the hints of this one, and `LISTEN` receives those of others.
//!
//! Only hints travel here. Hints that gather within a moment go out together, outside of every transaction that
//! matters. When the listener is broken, every process still polls. Hints that no other process waits for are not
//! sent: see [`Audience`].

mod audience;

use super::connection::CONNECT;
use super::readers::Readers;
use crate::doorbell::{Outgoing, WeakDoorbell};
use crate::{Doorbell, Ring, sql};
use audience::Audience;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use sqlx::postgres::{PgListener, PgPoolOptions};
use std::borrow::Cow;
use std::time::Duration;
use tokio::sync::Notify;

/// The name in `select_notify.sql`.
const CHANNEL: &str = "turnstone";
/// `NOTIFY` takes at most 8,000 bytes.
const LARGEST: usize = 7_500;
/// Notifications of one process are at least this far apart: a commit with `NOTIFY` is a queue of its own.
const APART: Duration = Duration::from_millis(5);
/// The pause before a message that was not sent is sent again.
const RETRY: Duration = Duration::from_millis(100);
/// How long a listener may receive nothing: twice as long as the pause between the announcements of this process.
const SILENT: Duration = Duration::from_secs(20);
/// The pause after a listener failed.
const PAUSE: Duration = Duration::from_secs(2);

/// The announcement of a process.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Here {
    /// True if it waits for events of streams, and not only for work.
    events: bool,
    /// True if it asks the others to say the same of themselves.
    asks: bool,
}

#[derive(Serialize)]
struct Rings<'a> {
    from: &'a str,
    rings: &'a [Ring],
    #[serde(skip_serializing_if = "Option::is_none")]
    here: Option<Here>,
}

/// The same as it arrives. Most hints are this process's own, and are not read.
#[derive(Deserialize)]
struct ReceivedRings<'a> {
    #[serde(borrow)]
    from: Cow<'a, str>,
    #[serde(borrow)]
    rings: &'a RawValue,
    #[serde(default)]
    here: Option<Here>,
}

/// Starts both directions; they end when all other users of the doorbell have gone. `origin` distinguishes this
/// process's hints from those of others.
pub(super) fn start(readers: &Readers, doorbell: &Doorbell, origin: String) {
    let (outgoing, heard, readers) = (doorbell.outgoing(), doorbell.downgrade(), readers.clone());
    let listened = doorbell.listened();
    tokio::spawn(async move {
        let audience = Audience::default();
        tokio::select! {
            () = carry_out(outgoing, &listened, &readers, &origin, &audience) => {}
            () = bring_in(&readers, &heard, &origin, &audience) => {}
        }
    });
}

async fn carry_out(
    mut outgoing: Outgoing,
    listened: &Notify,
    readers: &Readers,
    origin: &str,
    audience: &Audience,
) {
    loop {
        let hints = tokio::select! {
            hints = outgoing.gather(LARGEST, length) => hints,
            () = audience.stirs() => Some(Vec::new()),
            () = listened.notified() => Some(Vec::new()),
        };
        let Some(mut rings) = hints else { return };
        rings.retain(|ring| audience.waits_for(ring));
        let (here, missed) = audience.greeting(outgoing.has_followers());
        rings.extend(missed);
        if rings.is_empty() && here.is_none() {
            outgoing.sent();
        } else {
            let payload =
                serde_json::to_string(&Rings { from: origin, rings: &rings, here }).unwrap_or_default();
            let notify = || sqlx::query(sql::SELECT_NOTIFY.postgres).bind(payload.clone());
            match readers.ask("notify other processes", notify).await {
                Ok(_) => outgoing.sent(),
                Err(error) => {
                    tracing::debug!(%error, "hints were not sent to other processes, which poll instead");
                    audience.missed();
                    tokio::time::sleep(RETRY).await;
                }
            }
        }
        tokio::time::sleep(APART).await;
    }
}

fn length(ring: &Ring) -> usize {
    20 + match ring {
        Ring::Available | Ring::Due | Ring::AllEvents => 0,
        Ring::Revoked(text) | Ring::Asked(text) | Ring::Events(text) => text.len(),
    }
}

async fn bring_in(readers: &Readers, doorbell: &WeakDoorbell, origin: &str, audience: &Audience) {
    loop {
        let listened = listen(readers, doorbell, origin, audience).await;
        audience.is_deaf();
        if let Err(error) = listened {
            tracing::debug!(%error, "hints of other processes are not received; polling until they are");
            tokio::time::sleep(PAUSE).await;
        }
    }
}

/// Listens on a connection of its own until that one is lost or silent.
async fn listen(
    readers: &Readers,
    doorbell: &WeakDoorbell,
    origin: &str,
    audience: &Audience,
) -> Result<(), sqlx::Error> {
    // Made anew each time: a lost connection keeps its place, and another host may take the writes.
    let pool =
        PgPoolOptions::new().max_connections(1).acquire_timeout(CONNECT).connect_lazy_with(readers.options());
    let mut listener = PgListener::connect_with(&pool).await?;
    listener.eager_reconnect(false);
    listener.listen(CHANNEL).await?;
    audience.listens();
    look_again(doorbell);
    loop {
        let heard = match tokio::time::timeout(SILENT, listener.try_recv()).await {
            Ok(heard) => heard?,
            // A process receives its own announcements, so the connection or its server is cut off.
            Err(_) => None,
        };
        let Some(heard) = heard else { return Ok(()) };
        let Ok(ReceivedRings { from, rings, here }) = serde_json::from_str(heard.payload()) else { continue };
        if from == origin {
            continue;
        }
        audience.met(&from, here);
        if let Ok(rings) = serde_json::from_str::<Vec<Ring>>(rings.get()) {
            rings.into_iter().for_each(|ring| doorbell.bring_in(ring));
        }
    }
}

/// Notifies all parts, because hints may have been missed while no connection listened.
fn look_again(doorbell: &WeakDoorbell) {
    doorbell.bring_in(Ring::Available);
    doorbell.bring_in(Ring::Due);
}
