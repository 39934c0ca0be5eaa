-- What a shared budget limits, to be changed. $1 name, $2 tenant; NULL stands for every tenant.
SELECT u.name, u.tokens, u.tokens_per_day, u.cost, u.cost_per_day, u.currency, u.on_exceed, u.warn_at, u.given
FROM budget_rules AS u
WHERE u.name = $1 AND coalesce(u.tenant = $2, $2 IS NULL)
{lock}
