-- Jobs that have worked for others for longer than they may. $1 now, $2 at most so many.
SELECT j.id
FROM delegations AS d
JOIN jobs AS j ON j.seq = d.job_seq
WHERE d.state = 'open' AND d.deadline_at <= $1
ORDER BY d.deadline_at
LIMIT $2
