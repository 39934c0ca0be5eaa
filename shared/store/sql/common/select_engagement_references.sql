-- The definitions and budgets of these engagements, which may be unused without them.
SELECT e.digest, e.budget_seq
FROM engagements AS e
WHERE e.seq {in: seqs}
