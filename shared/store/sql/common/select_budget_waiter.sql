-- The job that has waited longest for the shared budget with this name.
SELECT j.id
FROM totals AS b
JOIN budget_waits AS w ON w.budget_seq = b.seq
JOIN jobs AS j ON j.seq = w.job_seq
WHERE b.name = $1
ORDER BY w.job_seq
LIMIT 1
