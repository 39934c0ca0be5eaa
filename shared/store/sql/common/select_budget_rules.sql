SELECT {columns of rule}
FROM budget_rules AS u
--- select_budget_rules
-- Shared budgets by name. $1 name, $2 tenant; NULL means every one.
WHERE ($1 IS NULL OR u.name = $1) AND ($2 IS NULL OR u.tenant = $2)
ORDER BY u.name
--- lock_budget_rule
-- The limit of a shared budget, to be changed. $1 name, $2 tenant; NULL means every tenant.
WHERE u.name = $1 AND coalesce(u.tenant = $2, $2 IS NULL)
{lock}
