-- The uses of models and their costs since $1, by day, tenant and model, newest day first. $2 tenant; NULL matches all.
SELECT v.paid_at / 86400000 AS day, j.tenant, v.model, count(*) AS runs,
       CAST(sum(v.tokens_in) AS BIGINT) AS tokens_in, CAST(sum(v.tokens_cached) AS BIGINT) AS tokens_cached,
       CAST(sum(v.tokens_out) AS BIGINT) AS tokens_out, CAST(sum(v.cost) AS BIGINT) AS cost
FROM journal AS v
JOIN jobs AS j ON j.seq = v.job_seq
WHERE v.paid_at >= $1 AND ($2 IS NULL OR j.tenant = $2)
GROUP BY v.paid_at / 86400000, j.tenant, v.model
ORDER BY day DESC, j.tenant, v.model
