//! What every turn of this worker shares.

use crate::breakers::BreakerWatch;
use crate::model::{ModelLimits, Prices, Providers};
use crate::options::WorkerOptions;
use crate::tool::Toolbox;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use turnstone_blocking::{in_place, wait_in_place};
use turnstone_domain::policy::Expression;
use turnstone_domain::review::ReviewRules;
use turnstone_domain::schema::{Schema, bytes_of};
use turnstone_domain::{AgentDefinition, Clock, Ids};
use turnstone_specs::agent_spec::Flows;
use turnstone_store::breakers::Breakers;
use turnstone_store::credentials::Credentials;
use turnstone_store::elsewhere::Elsewhere;
use turnstone_store::{Doorbell, Ledger};

/// Compiled things beyond this number are thrown away together and compiled again.
const KEPT: usize = 1024;

/// What every turn of this worker shares.
pub struct Deps {
    /// Where turns are made durable.
    pub ledger: Arc<dyn Ledger>,
    /// Hints.
    pub doorbell: Doorbell,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Ids.
    pub ids: Arc<dyn Ids>,
    /// Models.
    pub providers: Providers,
    /// How often models may be asked.
    pub limits: ModelLimits,
    /// What is left alone because it keeps failing.
    pub breakers: BreakerWatch,
    /// What tools are called with for users and static identities; without it, nothing.
    pub credentials: Option<Arc<dyn Credentials>>,
    /// What other servers are to be told that nobody waits for; without it, they are told nothing.
    pub elsewhere: Option<Arc<dyn Elsewhere>>,
    /// What models and tools cost.
    pub prices: Prices,
    /// Who may be asked for reviews, and what silence leads to.
    pub reviews: ReviewRules,
    /// Tools.
    pub toolbox: Toolbox,
    /// Settings.
    pub options: WorkerOptions,
    /// Flows that were used lately.
    pub(crate) flows: Flows,
    compiled: Compiled,
}

/// The most that compiled schemas weigh together, about 100 MB, before they are thrown away and compiled again.
const HEAVIEST: u64 = 5_000_000;

type CompiledSchema = Result<Arc<Schema>, String>;

#[derive(Default)]
struct Compiled {
    schemas: Mutex<HashMap<String, CompiledSchema>>,
    expressions: Mutex<HashMap<String, Expression>>,
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

    fn expressions(&self) -> MutexGuard<'_, HashMap<String, Expression>> {
        self.expressions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Checks a value, where it may block when that takes longer than a moment.
///
/// # Errors
/// As [`Schema::check`].
pub fn check(schema: &Schema, value: &Value) -> Result<(), String> {
    if schema.is_light(bytes_of(value)) { schema.check(value) } else { in_place(|| schema.check(value)) }
}

impl Deps {
    /// Puts the parts together, without rate limits and prices.
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
            credentials: None,
            elsewhere: None,
            prices,
            reviews: ReviewRules::default(),
            toolbox,
            options,
            flows: Flows::default(),
            compiled,
        }
    }

    /// The same with these rate limits.
    #[must_use]
    pub fn with_limits(self, limits: ModelLimits) -> Self {
        Self { limits, ..self }
    }

    /// The same with the circuit breakers of this keeper.
    #[must_use]
    pub fn with_breakers(self, keeper: Arc<dyn Breakers>) -> Self {
        Self { breakers: BreakerWatch::new(keeper), ..self }
    }

    /// The same with the credentials of this keeper.
    #[must_use]
    pub fn with_credentials(self, keeper: Arc<dyn Credentials>) -> Self {
        Self { credentials: Some(keeper), ..self }
    }

    /// The same, telling other servers what nobody waits for.
    #[must_use]
    pub fn with_elsewhere(self, elsewhere: Arc<dyn Elsewhere>) -> Self {
        Self { elsewhere: Some(elsewhere), ..self }
    }

    /// The same with these reviewers.
    #[must_use]
    pub fn with_reviews(self, reviews: ReviewRules) -> Self {
        Self { reviews, ..self }
    }

    /// The same with these prices.
    #[must_use]
    pub fn with_prices(self, prices: Prices) -> Self {
        Self { prices, ..self }
    }

    /// Compiles a schema where that may block, for [`Deps::schema`] to find.
    ///
    /// # Errors
    /// A sentence that says why it is not a JSON Schema.
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

    /// Checks a value against a schema, which RESOL has prepared; one that was thrown away since is compiled again.
    ///
    /// # Errors
    /// A sentence that says why the value does not fit, or why the schema is not a JSON Schema.
    pub fn check(&self, schema: &Value, value: &Value) -> Result<(), String> {
        let key = schema.to_string();
        let schema = self.compiled.known(&key).unwrap_or_else(|| {
            let compiled = in_place(|| Schema::compile(schema)).map(Arc::new);
            self.compiled.keep(key, &compiled);
            compiled
        })?;
        check(&schema, value)
    }

    /// A compiled expression of an agent.
    ///
    /// # Errors
    /// A sentence that says why it is not an expression.
    pub fn expression(&self, agent: &AgentDefinition, source: &str) -> Result<Expression, String> {
        let names: Vec<&str> = agent.capabilities.iter().map(|capability| capability.name.as_str()).collect();
        let key = format!("{}\n{source}", names.join(","));
        if let Some(known) = self.compiled.expressions().get(&key) {
            return Ok(known.clone());
        }
        let compiled = wait_in_place(|| Expression::compile(source, &names)).map_err(|e| e.to_string())?;
        let mut known = self.compiled.expressions();
        if known.len() >= KEPT {
            known.clear();
        }
        known.insert(key, compiled.clone());
        Ok(compiled)
    }
}
