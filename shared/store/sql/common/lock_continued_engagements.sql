-- Engagements that are to get further inputs, each with whose they are and the tenant of their newest job. The rows are
-- locked in one order for all, the totals first.
SELECT e.seq, e.id, e.user_id, c.turns, c.events, c.inputs, e.digest, e.retention_ms,
       (SELECT j.id FROM jobs AS j WHERE j.engagement_seq = e.seq ORDER BY j.seq DESC LIMIT 1) AS job_id,
       (SELECT j.tenant FROM jobs AS j WHERE j.engagement_seq = e.seq ORDER BY j.seq DESC LIMIT 1) AS tenant
FROM engagements AS e
JOIN totals AS c ON c.seq = e.seq
WHERE e.id {in: ids}
ORDER BY e.seq DESC
{lock of c, e}
