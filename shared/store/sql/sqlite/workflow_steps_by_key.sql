-- Steps by workflow and position, without their jobs. $1: JSON [[workflow_seq, step], …].
-- Differs from PostgreSQL: json_each.
SELECT s.workflow_seq, s.step, s.role, s.state, s.needs, s.next, '' AS job
FROM json_each($1) AS r
JOIN workflow_steps AS s ON s.workflow_seq = r.value ->> 0 AND s.step = r.value ->> 1
