-- Steps by workflow and position, without their jobs. $1: workflow_seqs, $2: steps.
-- Differs from SQLite: an array per column.
SELECT s.workflow_seq, s.step, s.role, s.state, s.needs, s.next, '' AS job
FROM unnest($1, $2) AS r (workflow_seq, step)
JOIN workflow_steps AS s ON s.workflow_seq = r.workflow_seq AND s.step = r.step
