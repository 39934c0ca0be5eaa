-- Shared budgets that jobs of these tenants ('' for none) and agents may have to pay into.
SELECT r.tenant, r.agent, u.name, u.model
FROM {rows: tenant, agent}
JOIN budget_rules AS u ON coalesce(u.tenant, r.tenant) = r.tenant AND coalesce(u.agent, r.agent) = r.agent
ORDER BY u.name
