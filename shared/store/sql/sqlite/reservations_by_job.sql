-- What jobs have reserved beyond the tokens of their engagements' budgets. $1: JSON [[job seq], …].
-- Differs from PostgreSQL: json_each.
SELECT s.job_seq, s.budget_seq, s.tokens, s.money
FROM json_each($1) AS r
JOIN reservations AS s ON s.job_seq = r.value ->> 0
