-- Those of these steps that wait for nothing any more.
SELECT s.workflow_seq, s.step, s.role, s.state, s.needs, s.next, s.job
FROM {rows: workflow_seq, step}
JOIN workflow_steps AS s ON s.workflow_seq = r.workflow_seq AND s.step = r.step
WHERE s.state = 'waiting' AND s.waits = 0
