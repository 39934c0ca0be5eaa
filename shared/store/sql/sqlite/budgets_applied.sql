-- Shared budgets that jobs of these tenants and agents may have to pay into. $1: JSON [[tenant or '', agent], …].
-- Differs from PostgreSQL: json_each.
SELECT r.value ->> 0 AS tenant, r.value ->> 1 AS agent, u.name, u.model
FROM json_each($1) AS r
JOIN budget_rules AS u ON coalesce(u.tenant, r.value ->> 0) = r.value ->> 0 AND coalesce(u.agent, r.value ->> 1) = r.value ->> 1
ORDER BY u.name
