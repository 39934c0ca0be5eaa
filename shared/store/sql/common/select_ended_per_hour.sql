-- A tenant's ended jobs per hour, queue and state, newest first, from $1 on: those that are still kept. $2 tenant.
SELECT j.ended_at / 3600000 * 3600000 AS hour, j.queue, j.state, count(*) AS jobs,
       CAST(sum(j.tokens_used) AS BIGINT) AS tokens, CAST(sum(j.ended_at - j.created_at) AS BIGINT) AS took_ms
FROM jobs AS j
WHERE j.ended_at >= $1 AND j.tenant = $2
GROUP BY 1, 2, 3
ORDER BY 1 DESC, 2, 3
