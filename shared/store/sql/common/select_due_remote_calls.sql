-- Calls of remote agents to cancel by $1, at most $2.
SELECT e.call_id, e.place, e.handle, e.tries, j.id AS job_id
FROM elsewhere AS e
JOIN jobs AS j ON j.seq = e.job_seq
WHERE e.due_at <= $1
ORDER BY e.due_at, e.call_id
LIMIT $2
