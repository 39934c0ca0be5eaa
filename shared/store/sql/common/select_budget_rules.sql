-- Shared budgets by name. $1 name, $2 tenant; NULL stands for every one.
SELECT u.name, u.tokens, u.tokens_per_day, u.cost, u.cost_per_day, u.currency, u.on_exceed, u.warn_at, u.given
FROM budget_rules AS u
WHERE ($1 IS NULL OR u.name = $1) AND ($2 IS NULL OR u.tenant = $2)
ORDER BY u.name
