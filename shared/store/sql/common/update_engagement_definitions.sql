-- An engagement's agent is that of the input whose turn has come.
UPDATE engagements
SET digest = d.digest, retention_ms = d.retention_ms
FROM {rows: seq, job_seq}
JOIN input_definitions AS d ON d.job_seq = r.job_seq
WHERE engagements.seq = r.seq
