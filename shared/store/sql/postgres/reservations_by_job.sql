-- What jobs have reserved beyond the tokens of their engagements' budgets. $1: job seqs. Differs from SQLite: an array.
SELECT s.job_seq, s.budget_seq, s.tokens, s.money
FROM reservations AS s
WHERE s.job_seq = ANY($1)
