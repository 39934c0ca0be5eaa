-- Jobs that wait for a budget: a shared one by name and day, or that of their engagement.
-- Differs from SQLite: an array per column.
INSERT INTO budget_waits (job_seq, budget_seq, attempt, due_at)
SELECT r.job_seq, coalesce(b.seq, r.budget_seq), r.attempt, r.due_at
FROM unnest($1, $2, $3, $4, $5, $6) AS r (job_seq, budget_seq, name, day, attempt, due_at)
LEFT JOIN totals AS b ON b.name = r.name AND b.day = r.day
ON CONFLICT (job_seq) DO UPDATE
SET budget_seq = excluded.budget_seq, attempt = excluded.attempt, due_at = excluded.due_at
