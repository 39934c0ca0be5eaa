SELECT j.seq, j.id
FROM jobs AS j
--- select_jobs_by_text
-- Jobs that something is to be done to, after one of them. $1 state, $2 queue, $3 type, $4 tenant, accepted from $5
-- until before $6; NULL matches all.
WHERE ($1 IS NULL OR j.state = $1) AND ($2 IS NULL OR j.queue = $2) AND ($3 IS NULL OR j.job_type = $3)
  AND ($4 IS NULL OR j.tenant = $4) AND ($5 IS NULL OR j.created_at >= $5) AND ($6 IS NULL OR j.created_at < $6)
  AND j.seq > $7
ORDER BY j.seq
LIMIT $8
--- select_dead_jobs_by_text
-- Dead letters that something is to be done to, after one of them. $1 queue, $2 type, $3 tenant, accepted from $4
-- until before $5; NULL matches all.
WHERE j.state = 'discarded' AND j.dead_letter = 1 AND ($1 IS NULL OR j.queue = $1) AND ($2 IS NULL OR j.job_type = $2)
  AND ($3 IS NULL OR j.tenant = $3) AND ($4 IS NULL OR j.created_at >= $4) AND ($5 IS NULL OR j.created_at < $5)
  AND j.seq > $6
ORDER BY j.seq
LIMIT $7
