//! What every turn of this worker shares.

use crate::breakers::BreakerWatch;
use crate::model::{ModelLimits, Prices, Providers};
use crate::options::WorkerOptions;
use crate::tool::Toolbox;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use turnstone_domain::policy::Expression;
use turnstone_domain::review::ReviewRules;
use turnstone_domain::schema::Schema;
use turnstone_domain::{AgentDefinition, Clock, Ids};
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
    compiled: Compiled,
}

#[derive(Default)]
struct Compiled {
    schemas: Mutex<HashMap<String, Result<Arc<Schema>, String>>>,
    expressions: Mutex<HashMap<String, Expression>>,
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

    /// A compiled schema.
    ///
    /// # Errors
    /// A sentence that says why it is not a JSON Schema.
    pub fn schema(&self, schema: &Value) -> Result<Arc<Schema>, String> {
        let key = schema.to_string();
        let mut known = self.compiled.schemas.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = known.get(&key) {
            return known.clone();
        }
        if known.len() >= KEPT {
            known.clear();
        }
        let compiled = Schema::compile(schema).map(Arc::new);
        known.insert(key, compiled.clone());
        compiled
    }

    /// A compiled expression of an agent.
    ///
    /// # Errors
    /// A sentence that says why it is not an expression.
    pub fn expression(&self, agent: &AgentDefinition, source: &str) -> Result<Expression, String> {
        let names: Vec<&str> = agent.capabilities.iter().map(|capability| capability.name.as_str()).collect();
        let key = format!("{}\n{source}", names.join(","));
        let mut known = self.compiled.expressions.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = known.get(&key) {
            return Ok(known.clone());
        }
        if known.len() >= KEPT {
            known.clear();
        }
        let compiled = Expression::compile(source, &names).map_err(|e| e.to_string())?;
        known.insert(key, compiled.clone());
        Ok(compiled)
    }
}
