-- Rows of shared budgets that are not there yet, with the limits of their rules. $1: names, $2: days; -1 counts altogether.
-- Differs from SQLite: many connections write, so a sequence gives the numbers, in one order for all.
INSERT INTO totals (seq, scope, name, day, currency, token_limit, money_limit, on_exceed, warn_at)
SELECT -nextval('shared_budgets_seq'),
       CASE WHEN u.model IS NOT NULL THEN 'model' WHEN u.agent IS NOT NULL THEN 'agent' WHEN u.tenant IS NOT NULL THEN 'tenant' ELSE 'fleet' END,
       u.name, r.day, u.currency,
       CASE WHEN r.day < 0 THEN u.tokens ELSE u.tokens_per_day END,
       CASE WHEN r.day < 0 THEN u.cost ELSE u.cost_per_day END,
       u.on_exceed, u.warn_at
FROM unnest($1, $2) AS r (name, day)
JOIN budget_rules AS u ON u.name = r.name
ORDER BY u.name, r.day
ON CONFLICT DO NOTHING
