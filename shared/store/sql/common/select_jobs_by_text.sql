SELECT j.seq, j.id
FROM jobs AS j
--- select_jobs_by_text
-- Jobs that something is to be done to, after the number $9. $1 state, $2 queue, $3 type, $4 tenant, accepted from $5 until before $6, $7
-- agent, $8 code of the last error; NULL matches all.
WHERE ($1 IS NULL OR j.state = $1) AND ($2 IS NULL OR j.queue = $2) AND ($3 IS NULL OR j.job_type = $3)
  AND ($4 IS NULL OR j.tenant = $4) AND ($5 IS NULL OR j.created_at >= $5) AND ($6 IS NULL OR j.created_at < $6)
  AND ($7 IS NULL OR EXISTS (SELECT 1 FROM engagements AS e WHERE e.seq = j.engagement_seq AND e.agent_name = $7))
  AND ($8 IS NULL OR $8 = (SELECT x.code FROM job_errors AS x WHERE x.job_seq = j.seq ORDER BY x.failure DESC LIMIT 1))
  AND j.seq > $9
ORDER BY j.seq
LIMIT $10
--- select_tagged_jobs_by_text
-- Jobs with a tag that something is to be done to, after the number $10. $1 state, $2 queue, $3 type, $4 tenant, accepted from $5 until before $6, $7
-- agent, $8 code of the last error; NULL matches all. $9 tag.
JOIN job_tags AS t ON t.job_seq = j.seq AND t.tag = $9
WHERE ($1 IS NULL OR j.state = $1) AND ($2 IS NULL OR j.queue = $2) AND ($3 IS NULL OR j.job_type = $3)
  AND ($4 IS NULL OR j.tenant = $4) AND ($5 IS NULL OR j.created_at >= $5) AND ($6 IS NULL OR j.created_at < $6)
  AND ($7 IS NULL OR EXISTS (SELECT 1 FROM engagements AS e WHERE e.seq = j.engagement_seq AND e.agent_name = $7))
  AND ($8 IS NULL OR $8 = (SELECT x.code FROM job_errors AS x WHERE x.job_seq = j.seq ORDER BY x.failure DESC LIMIT 1))
  AND t.job_seq > $10
ORDER BY t.job_seq
LIMIT $11
--- select_dead_jobs_by_text
-- Dead letters that something is to be done to, after one of them. $1 queue, $2 type, $3 tenant, accepted from $4
-- until before $5, $6 tag; NULL matches all.
WHERE j.state = 'discarded' AND j.dead_letter = 1 AND ($1 IS NULL OR j.queue = $1) AND ($2 IS NULL OR j.job_type = $2)
  AND ($3 IS NULL OR j.tenant = $3) AND ($4 IS NULL OR j.created_at >= $4) AND ($5 IS NULL OR j.created_at < $5)
  AND ($6 IS NULL OR EXISTS (SELECT 1 FROM job_tags AS t WHERE t.job_seq = j.seq AND t.tag = $6))
  AND j.seq > $7
ORDER BY j.seq
LIMIT $8
