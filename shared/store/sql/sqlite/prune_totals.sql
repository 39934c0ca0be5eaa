-- Deletes the totals of engagements that are gone and from whose budgets no other one spends. $1: JSON [[seq], …].
-- Differs from PostgreSQL: json_each.
DELETE FROM totals
WHERE seq IN (SELECT r.value ->> 0 FROM json_each($1) AS r)
  AND NOT EXISTS (SELECT 1 FROM engagements AS e WHERE e.seq = totals.seq)
  AND NOT EXISTS (SELECT 1 FROM engagements AS e WHERE e.budget_seq = totals.seq)
