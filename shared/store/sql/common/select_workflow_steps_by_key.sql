-- Steps by workflow and position, without their jobs.
SELECT s.workflow_seq, s.step, s.role, s.state, s.needs, s.next, '' AS job
FROM {rows: workflow_seq, step}
JOIN workflow_steps AS s ON s.workflow_seq = r.workflow_seq AND s.step = r.step
