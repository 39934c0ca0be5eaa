-- Jobs that wait for a budget: a shared one by name and day, or that of their engagement.
INSERT INTO budget_waits (job_seq, budget_seq, attempt, due_at)
SELECT r.job_seq, coalesce(b.seq, r.budget_seq), r.attempt, r.due_at
FROM {rows: job_seq, budget_seq, name, day, attempt, due_at}
LEFT JOIN totals AS b ON b.name = r.name AND b.day = r.day
WHERE true
ON CONFLICT (job_seq) DO UPDATE
SET budget_seq = excluded.budget_seq, attempt = excluded.attempt, due_at = excluded.due_at
