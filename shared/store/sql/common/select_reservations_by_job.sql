-- The amounts that jobs have reserved beyond the tokens of their engagements' budgets.
SELECT s.job_seq, s.budget_seq, s.tokens, s.money
FROM reservations AS s
WHERE s.job_seq {in: seqs}
