-- Sets what a shared budget limits. What the configuration or a manifest said of it stays, unless it says something now.
INSERT INTO budget_rules (name, tenant, agent, model, tokens, tokens_per_day, cost, cost_per_day, currency, on_exceed,
                          warn_at, given, created_at, updated_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $13)
ON CONFLICT (name) DO UPDATE
SET tokens = excluded.tokens, tokens_per_day = excluded.tokens_per_day, cost = excluded.cost,
    cost_per_day = excluded.cost_per_day, currency = excluded.currency, on_exceed = excluded.on_exceed,
    warn_at = excluded.warn_at, given = coalesce(excluded.given, budget_rules.given), updated_at = excluded.updated_at
