-- How far a job is. $1 id, $2 tenant; NULL matches all.
SELECT j.state, j.ended_at, p.job_seq, p.millionths, p.message, p.data, p.at
FROM jobs AS j
LEFT JOIN progress AS p ON p.job_seq = j.seq
WHERE j.id IN ($1, $1 || '~' || $2) AND coalesce(j.tenant = $2, $2 IS NULL)
