-- The results of steps.
SELECT s.workflow_seq, s.step, v.job_seq, v.result
FROM {rows: workflow_seq, step}
JOIN workflow_steps AS s ON s.workflow_seq = r.workflow_seq AND s.step = r.step
JOIN jobs AS j ON j.id = s.job_id AND j.workflow_seq = s.workflow_seq
JOIN job_results AS v ON v.job_seq = j.seq
