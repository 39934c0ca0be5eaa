SELECT v.id
FROM
--- select_job_ids
-- Ids of jobs from $1 to $2, and those that clients chose for their tenants. $3 tenant; NULL matches all.
  (SELECT * FROM (SELECT j.id FROM jobs AS j
                  WHERE j.id >= $1 AND j.id <= $2 AND ($3 IS NULL OR j.tenant = $3)
                  ORDER BY j.id LIMIT $4) AS a
   UNION
   SELECT * FROM (SELECT j.id FROM jobs AS j
                  WHERE substr(j.id, 1, 36) >= $1 AND substr(j.id, 1, 36) <= $2 AND substr(j.id, 37, 1) = '~'
                    AND ($3 IS NULL OR j.tenant = $3)
                  ORDER BY substr(j.id, 1, 36) LIMIT $4) AS b) AS v
ORDER BY v.id
LIMIT $4
--- select_engagement_ids
-- Ids of engagements from $1 to $2. $3 tenant, of one of their jobs; NULL matches all.
  engagements AS v
WHERE v.id >= $1 AND v.id <= $2
  AND ($3 IS NULL OR EXISTS (SELECT 1 FROM jobs AS j WHERE j.engagement_seq = v.seq AND j.tenant = $3))
ORDER BY v.id
LIMIT $4
