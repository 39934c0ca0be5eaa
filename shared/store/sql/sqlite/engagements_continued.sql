-- Engagements that are to get further inputs, each with whose they are and the tenant of their newest job.
-- $1: JSON [[id], …]. Differs from PostgreSQL: json_each, and there the rows are locked.
SELECT e.seq, e.id, e.user_id, c.turns, c.events, c.inputs, e.digest, e.retention_ms,
       (SELECT j.id FROM jobs AS j WHERE j.engagement_seq = e.seq ORDER BY j.seq DESC LIMIT 1) AS job_id,
       (SELECT j.tenant FROM jobs AS j WHERE j.engagement_seq = e.seq ORDER BY j.seq DESC LIMIT 1) AS tenant
FROM json_each($1) AS r
JOIN engagements AS e ON e.id = r.value ->> 0
JOIN totals AS c ON c.seq = e.seq
