//! Freezes of the fleet or of a tenant: a turn waits before its next call of a model or a tool.
//!
//! A process reads the freezes at most once per [`FRESH`], so a freeze holds within a second.

use crate::state::secured::Secured;
use crate::state::stop::Stop;
use std::collections::HashSet;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use turnstone_store::Freezes;
use turnstone_telemetry::Seldom;

/// Freezes this old are read again before they count.
const FRESH: Duration = Duration::from_millis(400);
/// The pause between two looks of a waiting turn.
const PAUSE: Duration = Duration::from_millis(200);

/// The freezes of the store; without a store there are none.
#[derive(Default)]
pub struct FreezeWatch {
    keeper: Option<Freezes>,
    known: Mutex<KnownFreezes>,
}

#[derive(Default)]
struct KnownFreezes {
    /// Frozen tenants; `None` is the fleet.
    scopes: HashSet<Option<String>>,
    read_at: Option<Instant>,
}

impl FreezeWatch {
    /// Returns the watch over these freezes.
    #[must_use]
    pub fn new(keeper: Freezes) -> Self {
        Self { keeper: Some(keeper), known: Mutex::default() }
    }

    /// Waits until neither the fleet nor the tenant is frozen. When the store cannot be read, what it said last counts.
    ///
    /// # Errors
    /// [`Stop::Drain`] when the worker drains first.
    pub(crate) async fn wait(
        &self,
        secured: Secured<'_>,
        tenant: &str,
        draining: &CancellationToken,
    ) -> Result<(), Stop> {
        while self.is_frozen(secured, tenant).await {
            tokio::select! {
                biased;
                () = draining.cancelled() => return Err(Stop::Drain),
                () = tokio::time::sleep(PAUSE) => {}
            }
        }
        Ok(())
    }

    /// Returns true while the fleet or the tenant is frozen.
    pub(crate) async fn is_frozen(&self, _: Secured<'_>, tenant: &str) -> bool {
        let Some(keeper) = &self.keeper else { return false };
        let mut known = self.known.lock().await;
        if known.read_at.is_none_or(|at| at.elapsed() >= FRESH) {
            match keeper.all().await {
                Ok(all) => known.scopes = all.into_iter().map(|freeze| freeze.tenant).collect(),
                Err(error) => {
                    static FACT: Seldom = Seldom::new();
                    if let Some(left_out) = FACT.due() {
                        tracing::warn!(left_out, %error, "freezes could not be read");
                    }
                }
            }
            known.read_at = Some(Instant::now());
        }
        known.scopes.contains(&None) || known.scopes.contains(&Some(tenant.to_owned()))
    }
}
