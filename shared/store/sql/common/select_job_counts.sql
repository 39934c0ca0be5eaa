SELECT count(*) AS jobs
FROM jobs AS j
--- select_job_counts
-- How many jobs match. $1 state, $2 queue, $3 type, $4 tenant, accepted from $5 until before $6, $7
-- agent, $8 code of the last error; NULL matches all.
WHERE ($1 IS NULL OR j.state = $1) AND ($2 IS NULL OR j.queue = $2) AND ($3 IS NULL OR j.job_type = $3)
  AND ($4 IS NULL OR j.tenant = $4) AND ($5 IS NULL OR j.created_at >= $5) AND ($6 IS NULL OR j.created_at < $6)
  AND ($7 IS NULL OR EXISTS (SELECT 1 FROM engagements AS e WHERE e.seq = j.engagement_seq AND e.agent_name = $7))
  AND ($8 IS NULL OR $8 = (SELECT x.code FROM job_errors AS x WHERE x.job_seq = j.seq ORDER BY x.failure DESC LIMIT 1))
--- select_tagged_job_counts
-- How many jobs with a tag match. $1 state, $2 queue, $3 type, $4 tenant, accepted from $5 until before $6, $7
-- agent, $8 code of the last error; NULL matches all. $9 tag.
JOIN job_tags AS t ON t.job_seq = j.seq AND t.tag = $9
WHERE ($1 IS NULL OR j.state = $1) AND ($2 IS NULL OR j.queue = $2) AND ($3 IS NULL OR j.job_type = $3)
  AND ($4 IS NULL OR j.tenant = $4) AND ($5 IS NULL OR j.created_at >= $5) AND ($6 IS NULL OR j.created_at < $6)
  AND ($7 IS NULL OR EXISTS (SELECT 1 FROM engagements AS e WHERE e.seq = j.engagement_seq AND e.agent_name = $7))
  AND ($8 IS NULL OR $8 = (SELECT x.code FROM job_errors AS x WHERE x.job_seq = j.seq ORDER BY x.failure DESC LIMIT 1))
--- select_dead_count
-- How many dead letters match. $1 queue, $2 type, $3 tenant, accepted from $4 until before $5, $6 tag; NULL matches all.
WHERE j.state = 'discarded' AND j.dead_letter = 1 AND ($1 IS NULL OR j.queue = $1) AND ($2 IS NULL OR j.job_type = $2)
  AND ($3 IS NULL OR j.tenant = $3) AND ($4 IS NULL OR j.created_at >= $4) AND ($5 IS NULL OR j.created_at < $5)
  AND ($6 IS NULL OR EXISTS (SELECT 1 FROM job_tags AS t WHERE t.job_seq = j.seq AND t.tag = $6))
