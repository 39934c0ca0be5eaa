//! The doorbell between processes: `NOTIFY` sends the hints of this one, and `LISTEN` receives those of others.
//!
//! Only hints travel here. Hints that gather within a moment go out together, outside of every transaction that
//! matters. When the listener is broken, every process still polls.

use super::session::Readers;
use crate::doorbell::{Outgoing, WeakDoorbell};
use crate::{Doorbell, Ring, sql};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use sqlx::postgres::PgListener;
use std::borrow::Cow;
use std::time::Duration;

/// The name in `select_notify.sql`.
const CHANNEL: &str = "turnstone";
/// `NOTIFY` takes at most 8,000 bytes.
const LARGEST: usize = 7_500;
/// Notifications of one process are at least this far apart: a commit with `NOTIFY` is a queue of its own.
const APART: Duration = Duration::from_millis(5);
/// The pause before a message that was not sent is sent again.
const RETRY: Duration = Duration::from_millis(100);
/// The pause after a listener failed.
const PAUSE: Duration = Duration::from_secs(2);

#[derive(Serialize)]
struct Rings<'a> {
    from: &'a str,
    rings: &'a [Ring],
}

/// The same as it arrives. Most hints are this process's own, and are not read.
#[derive(Deserialize)]
struct Heard<'a> {
    #[serde(borrow)]
    from: Cow<'a, str>,
    #[serde(borrow)]
    rings: &'a RawValue,
}

/// Starts both directions; they end when all other users of the doorbell have gone. `origin` distinguishes this
/// process's hints from those of others.
pub(super) fn start(readers: &Readers, doorbell: &Doorbell, origin: String) {
    let (outgoing, heard, readers) = (doorbell.outgoing(), doorbell.downgrade(), readers.clone());
    tokio::spawn(async move {
        tokio::select! {
            () = carry_out(outgoing, &readers, &origin) => {}
            () = bring_in(&readers, &heard, &origin) => {}
        }
    });
}

async fn carry_out(mut outgoing: Outgoing, readers: &Readers, origin: &str) {
    while let Some(rings) = outgoing.gather(LARGEST, length).await {
        let payload = serde_json::to_string(&Rings { from: origin, rings: &rings }).unwrap_or_default();
        let reported = sqlx::query(sql::SELECT_NOTIFY.postgres).bind(payload).execute(readers.pool()).await;
        match reported {
            Ok(_) => outgoing.sent(),
            Err(error) => {
                tracing::debug!(%error, "hints were not sent to other processes, which poll instead");
                tokio::time::sleep(RETRY).await;
            }
        }
        tokio::time::sleep(APART).await;
    }
}

fn length(ring: &Ring) -> usize {
    20 + match ring {
        Ring::Available | Ring::Due => 0,
        Ring::Revoked(text) | Ring::Asked(text) | Ring::Events(text) => text.len(),
    }
}

async fn bring_in(readers: &Readers, doorbell: &WeakDoorbell, origin: &str) {
    loop {
        if let Err(error) = listen(readers, doorbell, origin).await {
            tracing::debug!(%error, "hints of other processes are not received; polling until they are");
        }
        tokio::time::sleep(PAUSE).await;
    }
}

async fn listen(readers: &Readers, doorbell: &WeakDoorbell, origin: &str) -> Result<(), sqlx::Error> {
    let mut listener = PgListener::connect_with(readers.pool()).await?;
    listener.listen(CHANNEL).await?;
    look_again(doorbell);
    loop {
        let Some(heard) = listener.try_recv().await? else {
            look_again(doorbell);
            continue;
        };
        let Ok(Heard { from, rings }) = serde_json::from_str(heard.payload()) else { continue };
        if from != origin
            && let Ok(rings) = serde_json::from_str::<Vec<Ring>>(rings.get())
        {
            rings.into_iter().for_each(|ring| doorbell.bring_in(ring));
        }
    }
}

/// Notifies all parts, because hints may have been missed while no connection listened.
fn look_again(doorbell: &WeakDoorbell) {
    doorbell.bring_in(Ring::Available);
    doorbell.bring_in(Ring::Due);
}
