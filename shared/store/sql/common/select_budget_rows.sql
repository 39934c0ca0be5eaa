-- The rows of shared budgets, newest day first: those that count altogether, and those of the days from $3 on.
-- $1 name, $2 tenant; NULL means every one.
SELECT b.name, b.day, {columns of budget},
       (SELECT count(*) FROM budget_waits AS w JOIN jobs AS j ON j.seq = w.job_seq
        WHERE w.budget_seq = b.seq AND w.attempt = j.attempt AND j.state IN ('pending', 'retryable')) AS waiting
FROM totals AS b
JOIN budget_rules AS u ON u.name = b.name
WHERE ($1 IS NULL OR u.name = $1) AND ($2 IS NULL OR u.tenant = $2) AND (b.day < 0 OR b.day >= $3)
ORDER BY b.name, b.day DESC
