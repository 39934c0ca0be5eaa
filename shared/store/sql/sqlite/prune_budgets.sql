-- Deletes budgets from which no engagement spends any more. $1: JSON [[seq], …]. Differs from PostgreSQL: json_each.
DELETE FROM budgets
WHERE seq IN (SELECT r.value ->> 0 FROM json_each($1) AS r)
  AND NOT EXISTS (SELECT 1 FROM engagements AS e WHERE e.budget_seq = budgets.seq)
