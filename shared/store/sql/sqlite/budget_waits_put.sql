-- Jobs that wait for a budget: a shared one by name and day, or that of their engagement.
-- $1: JSON [[job seq, budget seq, name, day, attempt, due at], …]. Differs from PostgreSQL: json_each.
INSERT INTO budget_waits (job_seq, budget_seq, attempt, due_at)
SELECT r.value ->> 0, coalesce(b.seq, r.value ->> 1), r.value ->> 4, r.value ->> 5
FROM json_each($1) AS r
LEFT JOIN totals AS b ON b.name = r.value ->> 2 AND b.day = r.value ->> 3
WHERE true
ON CONFLICT (job_seq) DO UPDATE
SET budget_seq = excluded.budget_seq, attempt = excluded.attempt, due_at = excluded.due_at
