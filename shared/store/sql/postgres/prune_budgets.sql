-- Deletes budgets from which no engagement spends any more. $1: seqs. Differs from SQLite: an array.
DELETE FROM budgets
WHERE seq = ANY($1)
  AND NOT EXISTS (SELECT 1 FROM engagements AS e WHERE e.budget_seq = budgets.seq)
