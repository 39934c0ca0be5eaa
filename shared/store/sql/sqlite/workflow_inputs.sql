-- What steps of workflows get beside what their clients sent. $1: JSON [[seq], …] of their jobs.
-- Differs from PostgreSQL: json_each.
SELECT j.seq, w.id, v.parent_results
FROM json_each($1) AS r
JOIN jobs AS j ON j.seq = r.value ->> 0
JOIN workflows AS w ON w.seq = j.workflow_seq
JOIN job_envelopes AS v ON v.job_seq = j.seq
