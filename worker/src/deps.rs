//! The parts that all turns of this worker share.

use crate::breakers::BreakerWatch;
use crate::cache::Cache;
use crate::freeze::FreezeWatch;
use crate::model::estimates::{Estimates, Surplus};
use crate::model::{ModelLimits, Prices, Providers};
use crate::options::WorkerOptions;
use crate::schema_check;
use crate::tool::Toolbox;
use crate::writes::Writes;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use turnstone_blocking::{in_place, wait_in_place};
use turnstone_domain::policy::Expression;
use turnstone_domain::review::ReviewRules;
use turnstone_domain::schema::Schema;
use turnstone_domain::{Clock, Ids};
use turnstone_specs::agent_spec::Flows;
use turnstone_store::breakers::Breakers;
use turnstone_store::credentials::Credentials;
use turnstone_store::remote_calls::RemoteCalls;
use turnstone_store::{Doorbell, Freezes, Ledger};

/// The most compiled schemas and expressions of each kind; beyond that the cache is emptied.
const KEPT: usize = 1024;

/// The parts that all turns of this worker share.
pub struct Deps {
    /// The ledger that makes turns durable.
    pub ledger: Arc<dyn Ledger>,
    /// Notifications, which are hints only.
    pub doorbell: Doorbell,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// The generator of ids.
    pub ids: Arc<dyn Ids>,
    /// The model providers.
    pub providers: Providers,
    /// The rate limits of models.
    pub limits: ModelLimits,
    /// The circuit breakers.
    pub breakers: BreakerWatch,
    /// The freezes of the fleet and of tenants.
    pub(crate) freezes: FreezeWatch,
    /// The credentials of users and static identities; without it, there are none.
    pub credentials: Option<Credentials>,
    /// The cancellations for other servers; without it, none is sent.
    pub remote_calls: Option<RemoteCalls>,
    /// The prices of models and tools.
    pub prices: Prices,
    /// The knowledge about models for the estimates of their calls.
    pub estimates: Estimates,
    /// The groups of reviewers, and the consequence of a missed deadline.
    pub reviews: ReviewRules,
    /// The tools.
    pub toolbox: Toolbox,
    /// The settings.
    pub options: WorkerOptions,
    /// Flows that were used lately.
    pub(crate) flows: Flows,
    /// The writes of its turns that are under way.
    pub(crate) writes: Writes,
    compiled: Compiled,
}

/// The most weight of all compiled schemas, about 100 MB; beyond that the cache is emptied.
const HEAVIEST: u64 = 5_000_000;

type CompiledSchema = Result<Arc<Schema>, String>;

struct Compiled {
    schemas: Mutex<HashMap<String, CompiledSchema>>,
    expressions: Cache<Expression>,
}

impl Default for Compiled {
    fn default() -> Self {
        Self { schemas: Mutex::default(), expressions: Cache::of(KEPT) }
    }
}

impl Compiled {
    fn known(&self, key: &str) -> Option<CompiledSchema> {
        self.schemas.lock().unwrap_or_else(PoisonError::into_inner).get(key).cloned()
    }

    fn keep(&self, key: String, compiled: &CompiledSchema) {
        let mut known = self.schemas.lock().unwrap_or_else(PoisonError::into_inner);
        let weight: u64 = known.values().flatten().map(|schema| schema.weight()).sum();
        if known.len() >= KEPT || weight > HEAVIEST {
            known.clear();
        }
        known.insert(key, compiled.clone());
    }
}

impl Deps {
    /// Returns the parts together, without rate limits and prices.
    pub fn new(
        store: (Arc<dyn Ledger>, Doorbell),
        clock: Arc<dyn Clock>,
        ids: Arc<dyn Ids>,
        providers: Providers,
        toolbox: Toolbox,
        options: WorkerOptions,
    ) -> Self {
        let (ledger, doorbell) = store;
        let (limits, prices) = (ModelLimits::default(), Prices::default());
        let (breakers, compiled) = (BreakerWatch::default(), Compiled::default());
        Self {
            ledger,
            doorbell,
            clock,
            ids,
            providers,
            limits,
            breakers,
            freezes: FreezeWatch::default(),
            credentials: None,
            remote_calls: None,
            prices,
            estimates: Estimates::default(),
            reviews: ReviewRules::default(),
            toolbox,
            options,
            flows: Flows::default(),
            writes: Writes::default(),
            compiled,
        }
    }

    /// Adds these rate limits.
    #[must_use]
    pub fn with_limits(self, limits: ModelLimits) -> Self {
        Self { limits, ..self }
    }

    /// Adds the circuit breakers of this keeper.
    #[must_use]
    pub fn with_breakers(self, keeper: Arc<dyn Breakers>) -> Self {
        Self { breakers: BreakerWatch::new(keeper), ..self }
    }

    /// Adds these freezes.
    #[must_use]
    pub fn with_freezes(self, keeper: Freezes) -> Self {
        Self { freezes: FreezeWatch::new(keeper), ..self }
    }

    /// Adds the credentials of this keeper.
    #[must_use]
    pub fn with_credentials(self, keeper: Credentials) -> Self {
        Self { credentials: Some(keeper), ..self }
    }

    /// Adds the cancellations for other servers.
    #[must_use]
    pub fn with_remote_calls(self, remote_calls: RemoteCalls) -> Self {
        Self { remote_calls: Some(remote_calls), ..self }
    }

    /// Adds these reviewers.
    #[must_use]
    pub fn with_reviews(self, reviews: ReviewRules) -> Self {
        Self { reviews, ..self }
    }

    /// Adds these prices.
    #[must_use]
    pub fn with_prices(self, prices: Prices) -> Self {
        Self { prices, ..self }
    }

    /// Adds this knowledge about models.
    #[must_use]
    pub fn with_estimates(self, estimates: Estimates) -> Self {
        Self { estimates, ..self }
    }

    /// Returns what calls of a model used above their estimates of late, at most.
    pub fn surplus(&self, model: &str) -> Surplus {
        self.estimates.surplus(model, self.clock.now())
    }

    /// Compiles a schema in a place that may block, and keeps it for [`Deps::check`].
    ///
    /// # Errors
    /// A sentence with the reason why it is not a JSON Schema.
    pub async fn prepare(&self, schema: &Value) -> Result<(), String> {
        let key = schema.to_string();
        if let Some(known) = self.compiled.known(&key) {
            return known.map(drop);
        }
        let schema = schema.clone();
        let compiling = turnstone_blocking::run(move || Schema::compile(&schema).map(Arc::new));
        let compiled = compiling.await.unwrap_or_else(|_| Err("the schema could not be compiled".to_owned()));
        self.compiled.keep(key, &compiled);
        compiled.map(drop)
    }

    /// Checks a value against a schema, which RESOL has prepared; one that left the cache is compiled again.
    ///
    /// # Errors
    /// A sentence with the reason why the value does not fit, or why the schema is not a JSON Schema.
    pub fn check(&self, schema: &Value, value: &Value) -> Result<(), String> {
        let key = schema.to_string();
        let schema = self.compiled.known(&key).unwrap_or_else(|| {
            let compiled = in_place(|| Schema::compile(schema)).map(Arc::new);
            self.compiled.keep(key, &compiled);
            compiled
        })?;
        schema_check::check(&schema, value)
    }

    /// Returns a compiled expression; `names` are those of the capabilities that it may use in their dotted form.
    ///
    /// # Errors
    /// A sentence with the reason why it is not an expression.
    pub fn expression(&self, names: &[&str], source: &str) -> Result<Expression, String> {
        // JSON, because names and sources may contain any separator.
        let key = serde_json::json!([names, source]).to_string();
        self.compiled.expressions.get_or(key, || {
            wait_in_place(|| Expression::compile(source, names)).map_err(|error| error.to_string())
        })
    }
}
