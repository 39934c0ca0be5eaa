-- An engagement's agent is that of the input whose turn has come. $1: JSON [[seq of the engagement, seq of the job], …].
-- Differs from PostgreSQL: json_each.
UPDATE engagements
SET digest = d.digest, retention_ms = d.retention_ms
FROM json_each($1) AS r
JOIN input_definitions AS d ON d.job_seq = r.value ->> 1
WHERE engagements.seq = r.value ->> 0
