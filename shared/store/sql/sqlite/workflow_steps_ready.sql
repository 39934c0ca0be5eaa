-- Those of these steps that wait for nothing any more. $1: JSON [[workflow_seq, step], …].
-- Differs from PostgreSQL: json_each.
SELECT s.workflow_seq, s.step, s.role, s.state, s.needs, s.next, s.job
FROM json_each($1) AS r
JOIN workflow_steps AS s ON s.workflow_seq = r.value ->> 0 AND s.step = r.value ->> 1
WHERE s.state = 'waiting' AND s.waits = 0
