-- The oldest job that waits for the shared budget with this name.
SELECT j.id
FROM totals AS b
JOIN budget_waits AS w ON w.budget_seq = b.seq
JOIN jobs AS j ON j.seq = w.job_seq
WHERE b.name = $1 AND w.attempt = j.attempt AND j.state = 'pending'
ORDER BY w.job_seq
LIMIT 1
