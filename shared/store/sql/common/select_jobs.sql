SELECT {columns of job}
FROM jobs AS j
--- select_jobs
-- Jobs for a list, newest first. $1 state, $2 queue, $3 type, $4 tenant, accepted from $5 until before $6; NULL
-- matches all.
WHERE ($1 IS NULL OR j.state = $1) AND ($2 IS NULL OR j.queue = $2) AND ($3 IS NULL OR j.job_type = $3)
  AND ($4 IS NULL OR j.tenant = $4) AND ($5 IS NULL OR j.created_at >= $5) AND ($6 IS NULL OR j.created_at < $6)
ORDER BY j.seq DESC
LIMIT $7 OFFSET $8
--- select_oldest_jobs
-- Jobs for a list, oldest first. $1 state, $2 queue, $3 type, $4 tenant, accepted from $5 until before $6; NULL
-- matches all.
WHERE ($1 IS NULL OR j.state = $1) AND ($2 IS NULL OR j.queue = $2) AND ($3 IS NULL OR j.job_type = $3)
  AND ($4 IS NULL OR j.tenant = $4) AND ($5 IS NULL OR j.created_at >= $5) AND ($6 IS NULL OR j.created_at < $6)
ORDER BY j.seq
LIMIT $7 OFFSET $8
--- select_sorted_jobs
-- Jobs for a list, by a column, all of them read first. $1 state, $2 queue, $3 type, $4 tenant, accepted from $5
-- until before $6; NULL matches all. $7 is the column, $8 is 1 or, to turn the order round, -1.
WHERE ($1 IS NULL OR j.state = $1) AND ($2 IS NULL OR j.queue = $2) AND ($3 IS NULL OR j.job_type = $3)
  AND ($4 IS NULL OR j.tenant = $4) AND ($5 IS NULL OR j.created_at >= $5) AND ($6 IS NULL OR j.created_at < $6)
ORDER BY $8 * CASE $7 WHEN 'priority' THEN j.priority WHEN 'attempt' THEN j.attempt
                   WHEN 'run_at' THEN j.run_at ELSE coalesce(j.ended_at, 0) END, $8 * j.seq
LIMIT $9 OFFSET $10
--- select_job_by_id
-- One job, to look at. $1 id, $2 tenant; NULL means every tenant.
WHERE j.id = $1 AND coalesce(j.tenant = $2, $2 IS NULL)
--- select_dead_job
-- One dead letter. $1 id, $2 tenant; NULL means every tenant.
WHERE j.id = $1 AND j.state = 'discarded' AND j.dead_letter = 1 AND coalesce(j.tenant = $2, $2 IS NULL)
--- select_dead_jobs
-- Dead letters, newest first. $1 queue, $2 type, $3 tenant, accepted from $4 until before $5; NULL matches all.
WHERE j.state = 'discarded' AND j.dead_letter = 1 AND ($1 IS NULL OR j.queue = $1) AND ($2 IS NULL OR j.job_type = $2)
  AND ($3 IS NULL OR j.tenant = $3) AND ($4 IS NULL OR j.created_at >= $4) AND ($5 IS NULL OR j.created_at < $5)
ORDER BY j.seq DESC
LIMIT $6 OFFSET $7
