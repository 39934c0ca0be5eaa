-- Rows of shared budgets that are not there yet, with the limits of their rules. $1: JSON [[name, day], …]; -1 counts
-- altogether. Differs from PostgreSQL: one connection writes, so the numbers follow the lowest one.
INSERT INTO totals (seq, scope, name, day, currency, token_limit, money_limit, on_exceed, warn_at)
SELECT (SELECT min(0, coalesce(min(seq), 0)) FROM totals) - row_number() OVER (ORDER BY u.name, r.value ->> 1),
       CASE WHEN u.model IS NOT NULL THEN 'model' WHEN u.agent IS NOT NULL THEN 'agent' WHEN u.tenant IS NOT NULL THEN 'tenant' ELSE 'fleet' END,
       u.name, r.value ->> 1, u.currency,
       CASE WHEN r.value ->> 1 < 0 THEN u.tokens ELSE u.tokens_per_day END,
       CASE WHEN r.value ->> 1 < 0 THEN u.cost ELSE u.cost_per_day END,
       u.on_exceed, u.warn_at
FROM json_each($1) AS r
JOIN budget_rules AS u ON u.name = r.value ->> 0
WHERE true
ON CONFLICT DO NOTHING
