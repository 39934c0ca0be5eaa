-- What models were used for and cost since $1, by day, tenant and model, newest day first. $2 tenant; NULL matches all.
SELECT c.at / 86400000 AS day, j.tenant, c.model, count(*) AS runs,
       CAST(sum(c.tokens_in) AS BIGINT) AS tokens_in, CAST(sum(c.tokens_cached) AS BIGINT) AS tokens_cached,
       CAST(sum(c.tokens_out) AS BIGINT) AS tokens_out, CAST(sum(c.cost) AS BIGINT) AS cost
FROM checkpoints AS c
JOIN jobs AS j ON j.seq = c.job_seq
WHERE c.model IS NOT NULL AND c.at >= $1 AND ($2 IS NULL OR j.tenant = $2)
GROUP BY c.at / 86400000, j.tenant, c.model
ORDER BY day DESC, j.tenant, c.model
