SELECT {columns of job}
FROM jobs AS j
--- select_jobs
-- Jobs for a list, newest first. The filter is $1 to $8. Only those below the number $9; NULL matches all.
WHERE {wanted jobs}
  AND ($9 IS NULL OR j.seq < $9)
ORDER BY j.seq DESC
LIMIT $10 OFFSET $11
--- select_oldest_jobs
-- Jobs for a list, oldest first. The filter is $1 to $8. Only those above the number $9; NULL matches all.
WHERE {wanted jobs}
  AND ($9 IS NULL OR j.seq > $9)
ORDER BY j.seq
LIMIT $10 OFFSET $11
--- select_sorted_jobs
-- Jobs for a list, by a column, all of them read first. The filter is $1 to $8. $9 is the column,
-- $10 is 1 or, to turn the order round, -1.
WHERE {wanted jobs}
ORDER BY $10 * CASE $9 WHEN 'priority' THEN j.priority WHEN 'attempt' THEN j.attempt
                   WHEN 'run_at' THEN j.run_at ELSE coalesce(j.ended_at, 0) END, $10 * j.seq
LIMIT $11 OFFSET $12
--- select_tagged_jobs
-- Jobs with a tag for a list, newest first. The filter is $1 to $8. $9 tag. Only those below the number $10; NULL matches all.
JOIN job_tags AS t ON t.job_seq = j.seq AND t.tag = $9
WHERE {wanted jobs}
  AND ($10 IS NULL OR t.job_seq < $10)
ORDER BY t.job_seq DESC
LIMIT $11 OFFSET $12
--- select_oldest_tagged_jobs
-- Jobs with a tag for a list, oldest first. The filter is $1 to $8. $9 tag. Only those above the number $10; NULL matches all.
JOIN job_tags AS t ON t.job_seq = j.seq AND t.tag = $9
WHERE {wanted jobs}
  AND ($10 IS NULL OR t.job_seq > $10)
ORDER BY t.job_seq
LIMIT $11 OFFSET $12
--- select_sorted_tagged_jobs
-- Jobs with a tag for a list, by a column, all of them read first. The filter is $1 to $8. $9 tag. $10 is the column,
-- $11 is 1 or, to turn the order round, -1.
JOIN job_tags AS t ON t.job_seq = j.seq AND t.tag = $9
WHERE {wanted jobs}
ORDER BY $11 * CASE $10 WHEN 'priority' THEN j.priority WHEN 'attempt' THEN j.attempt
                   WHEN 'run_at' THEN j.run_at ELSE coalesce(j.ended_at, 0) END, $11 * j.seq
LIMIT $12 OFFSET $13
--- select_job_by_id
-- One job, to look at. $1 id, $2 tenant, a client of which may have chosen the id; NULL means every tenant.
WHERE j.id IN ($1, $1 || '~' || $2) AND coalesce(j.tenant = $2, $2 IS NULL)
--- select_jobs_of_any_tenant
-- The jobs whose id is $1 without the tenant for which a client chose it.
WHERE j.seq IN (SELECT a.seq FROM jobs AS a WHERE a.id = $1
                UNION ALL
                SELECT b.seq FROM jobs AS b WHERE substr(b.id, 1, 36) = $1 AND substr(b.id, 37, 1) = '~')
ORDER BY j.seq
--- select_dead_job
-- One dead letter. $1 id, $2 tenant, a client of which may have chosen the id; NULL means every tenant.
WHERE j.id IN ($1, $1 || '~' || $2) AND j.state = 'discarded' AND j.dead_letter = 1
  AND coalesce(j.tenant = $2, $2 IS NULL)
--- select_dead_jobs
-- Dead letters, newest first. The filter is $1 to $6, $9 the job that they follow, if any.
WHERE {wanted dead letters}
  AND ($9 IS NULL OR j.seq < (SELECT p.seq FROM jobs AS p
                                WHERE p.id IN ($9, $9 || '~' || $3) AND coalesce(p.tenant = $3, $3 IS NULL)))
ORDER BY j.seq DESC
LIMIT $7 OFFSET $8
