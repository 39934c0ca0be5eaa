SELECT {columns of job}, w.attempt AS waits_since
--- lock_due_budget_waits
-- Jobs that waited for a budget and may go on at $1, at most $2, with the attempt that did not fit.
FROM budget_waits AS w
JOIN jobs AS j ON j.seq = w.job_seq
WHERE w.due_at <= $1
ORDER BY j.seq
LIMIT $2
{lock of j skip}
--- select_breaker_waits
-- Jobs that wait for the breaker $1, at most $2, with the attempt that it refused.
FROM breaker_waits AS w
JOIN jobs AS j ON j.seq = w.job_seq
WHERE w.breaker = $1
ORDER BY w.job_seq
LIMIT $2
{lock of j skip}
