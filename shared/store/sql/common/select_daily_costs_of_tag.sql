-- The uses of models by jobs with a tag, and by their delegates, and their costs since $1, by day, tenant and model, newest
-- day first. $2 tenant; NULL matches all. $3 tag.
SELECT v.paid_at / 86400000 AS day, j.tenant, v.model, count(*) AS runs,
       CAST(sum(v.tokens_in) AS BIGINT) AS tokens_in, CAST(sum(v.tokens_cached) AS BIGINT) AS tokens_cached,
       CAST(sum(v.tokens_out) AS BIGINT) AS tokens_out, CAST(sum(v.cost) AS BIGINT) AS cost
FROM journal AS v
JOIN jobs AS j ON j.seq = v.job_seq
WHERE v.paid_at >= $1 AND ($2 IS NULL OR j.tenant = $2)
  AND (v.job_seq IN (SELECT t.job_seq FROM job_tags AS t WHERE t.tag = $3)
       OR v.stream IN (SELECT e.seq FROM engagements AS e
                       WHERE e.depth > 0 AND e.budget_seq IN (SELECT o.engagement_seq FROM job_tags AS t
                                                              JOIN jobs AS o ON o.seq = t.job_seq
                                                              WHERE t.tag = $3 AND o.engagement_seq IS NOT NULL)))
GROUP BY v.paid_at / 86400000, j.tenant, v.model
ORDER BY day DESC, j.tenant, v.model
