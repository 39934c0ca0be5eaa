-- Steps wait for so many others less. $1: JSON [[workflow_seq, step, how many], …]. Differs from PostgreSQL: json_each.
UPDATE workflow_steps SET waits = waits - (r.value ->> 2)
FROM json_each($1) AS r
WHERE workflow_steps.workflow_seq = r.value ->> 0 AND workflow_steps.step = r.value ->> 1
