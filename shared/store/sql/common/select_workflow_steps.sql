-- The steps of a workflow, with the states of their jobs.
SELECT s.step, s.name, s.role, s.needs, s.state, s.job_id, s.job_type, j.state AS job_state
FROM workflow_steps AS s
LEFT JOIN jobs AS j ON j.id = s.job_id AND j.workflow_seq = s.workflow_seq
WHERE s.workflow_seq = $1
ORDER BY s.step
