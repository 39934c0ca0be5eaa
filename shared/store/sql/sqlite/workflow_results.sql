-- What steps returned. $1: JSON [[workflow_seq, step], …]. Differs from PostgreSQL: json_each.
SELECT s.workflow_seq, s.step, v.job_seq, v.result
FROM json_each($1) AS r
JOIN workflow_steps AS s ON s.workflow_seq = r.value ->> 0 AND s.step = r.value ->> 1
JOIN jobs AS j ON j.id = s.job_id AND j.workflow_seq = s.workflow_seq
JOIN job_results AS v ON v.job_seq = j.seq
