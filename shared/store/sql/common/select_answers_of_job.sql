-- The calls of job $1 that asked its user and are over, the newest first, $4 at most. $2 and $3: the names of the tool that asks.
SELECT t.call_id, j.id AS job_id, t.outcome
FROM jobs AS j
JOIN tool_calls AS t ON t.job_seq = j.seq AND t.name IN ($2, $3) AND t.outcome IS NOT NULL
WHERE j.id = $1
ORDER BY t.seq DESC
LIMIT $4
