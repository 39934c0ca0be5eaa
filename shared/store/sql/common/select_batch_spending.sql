-- What the engagements of jobs with a tag have spent and reserved, their delegates included. $1 tag, $2 tenant; NULL
-- matches all.
SELECT CAST(coalesce(sum(b.settled), 0) AS BIGINT) AS tokens_used,
       CAST(coalesce(sum(b.reserved), 0) AS BIGINT) AS tokens_reserved,
       CAST(coalesce(sum(b.money_settled), 0) AS BIGINT) AS cost_used,
       CAST(coalesce(sum(b.money_reserved), 0) AS BIGINT) AS cost_reserved
FROM totals AS b
WHERE b.seq IN (SELECT e.budget_seq
                FROM job_tags AS t
                JOIN jobs AS j ON j.seq = t.job_seq
                JOIN engagements AS e ON e.seq = j.engagement_seq
                WHERE t.tag = $1 AND ($2 IS NULL OR j.tenant = $2))
