-- The calls of an engagement's tools and their costs, by job and name. Notes beside a call are no runs.
SELECT j.id AS job_id, t.name, CAST(sum(CASE WHEN t.call_id LIKE '%.note-%' THEN 0 ELSE 1 END) AS BIGINT) AS runs, CAST(coalesce(sum(t.duration_ms), 0) AS BIGINT) AS duration_ms,
       CAST(sum(t.cost) AS BIGINT) AS cost
FROM engagements AS e
JOIN tool_calls AS t ON t.engagement_seq = e.seq
JOIN jobs AS j ON j.seq = t.job_seq
WHERE e.id = $1
GROUP BY j.seq, j.id, t.name
ORDER BY j.seq, t.name
