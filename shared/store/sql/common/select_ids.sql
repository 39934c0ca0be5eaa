SELECT v.id
FROM
--- select_job_ids
-- Ids of jobs from $1 to $2. $3 tenant; NULL matches all.
  jobs AS v
WHERE v.id >= $1 AND v.id <= $2 AND ($3 IS NULL OR v.tenant = $3)
ORDER BY v.id
LIMIT $4
--- select_engagement_ids
-- Ids of engagements from $1 to $2. $3 tenant, of one of their jobs; NULL matches all.
  engagements AS v
WHERE v.id >= $1 AND v.id <= $2
  AND ($3 IS NULL OR EXISTS (SELECT 1 FROM jobs AS j WHERE j.engagement_seq = v.seq AND j.tenant = $3))
ORDER BY v.id
LIMIT $4
