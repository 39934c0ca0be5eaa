-- Shared budgets that jobs of these tenants and agents may have to pay into. $1: tenants or '', $2: agents.
-- Differs from SQLite: arrays.
SELECT r.tenant, r.agent, u.name, u.model
FROM unnest($1, $2) AS r (tenant, agent)
JOIN budget_rules AS u ON coalesce(u.tenant, r.tenant) = r.tenant AND coalesce(u.agent, r.agent) = r.agent
ORDER BY u.name
