//! Freezes of the fleet or of a tenant: a turn waits before its next call of a model or a tool.
//!
//! A process reads the freezes at most once per [`FRESH`], so a freeze holds within a second.

use crate::turn::barrier::Secured;
use crate::turn::state::Turn;
use crate::turn::stop::Stop;
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
        _: Secured<'_>,
        tenant: &str,
        draining: &CancellationToken,
    ) -> Result<(), Stop> {
        while self.is_frozen(tenant).await {
            tokio::select! {
                biased;
                () = draining.cancelled() => return Err(Stop::Drain),
                () = tokio::time::sleep(PAUSE) => {}
            }
        }
        Ok(())
    }

    async fn is_frozen(&self, tenant: &str) -> bool {
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

impl Turn {
    /// Returns true while the fleet or the job's tenant is frozen.
    ///
    /// # Errors
    /// As [`Turn::secured`].
    pub async fn is_frozen(&self) -> Result<bool, Stop> {
        self.secured()?;
        Ok(self.deps.freezes.is_frozen(&self.tenant()).await)
    }

    /// Waits while the fleet or the job's tenant is frozen: no model and no tool is called meanwhile.
    ///
    /// # Errors
    /// [`Stop::Drain`]; as [`Turn::secured`].
    pub async fn unless_frozen(&self) -> Result<(), Stop> {
        self.deps.freezes.wait(self.secured()?, &self.tenant(), &self.draining).await
    }

    /// Returns the tenant of the job (OJS multi-tenancy), or `meta.tenant` of an older client; empty without one.
    pub fn tenant(&self) -> String {
        let named = |member: &str| self.job.meta.get(member).and_then(|value| value.parse::<String>().ok());
        named("tenant_id").or_else(|| named("tenant")).unwrap_or_default()
    }
}
