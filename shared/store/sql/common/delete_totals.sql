-- Deletes the totals of engagements that are gone and from whose budgets no other one spends.
DELETE FROM totals
WHERE seq {in: seqs}
  AND NOT EXISTS (SELECT 1 FROM engagements AS e WHERE e.seq = totals.seq)
  AND NOT EXISTS (SELECT 1 FROM engagements AS e WHERE e.budget_seq = totals.seq)
