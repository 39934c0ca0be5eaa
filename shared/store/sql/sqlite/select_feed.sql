-- The rows with events after ($1, $2, $3) and up to ($4, $5, $6), oldest first, with these names ($7), of jobs in these queues ($8) and
-- of these types ($9), and of a tenant ($10); lists have commas between, NULL matches all. An event that is about no job
-- passes whatever queues and types are asked for: its data says what it is about. Differs from PostgreSQL: lists of words, and how the
-- commits are read in their order.
SELECT c.number, v.commit_id, v.stream, v.last_event, v.last_message, v.events, v.turn, v.phase, v.names, v.at, v.body, j.id AS job_id, j.job_type, j.queue, e.id AS engagement_id, e.agent_name,
       coalesce(j.tenant, f.tenant, nullif(b.tenant, '')) AS tenant
FROM commits AS c
CROSS JOIN journal AS v ON v.commit_id = c.number AND v.events > 0
LEFT JOIN jobs AS j ON j.seq = v.job_seq
LEFT JOIN engagements AS e ON e.seq = j.engagement_seq
LEFT JOIN workflows AS f ON f.seq = v.stream
LEFT JOIN batches AS b ON b.event_seq = v.stream
WHERE c.number >= $1 AND (c.number, v.stream, v.last_event) > ($1, $2, $3)
  AND c.number <= $4 AND (c.number, v.stream, v.last_event) <= ($4, $5, $6)
  AND EXISTS (SELECT 1 FROM json_each('["' || replace($7, ',', '","') || '"]') AS n
              WHERE instr(',' || v.names || ',', ',' || n.value || ',') > 0)
  AND ($8 IS NULL OR j.seq IS NULL OR instr(',' || $8 || ',', ',' || j.queue || ',') > 0)
  AND ($9 IS NULL OR j.seq IS NULL OR instr(',' || $9 || ',', ',' || j.job_type || ',') > 0)
  AND ($10 IS NULL OR coalesce(j.tenant, f.tenant, nullif(b.tenant, '')) = $10)
ORDER BY c.number, v.stream, v.last_event
LIMIT $11
