-- What the clients sent. $1: JSON [[seq], …]. Differs from PostgreSQL: json_each.
SELECT v.job_seq, v.retry, v.args, v.meta, v.options, v.extra, v.parent_results
FROM json_each($1) AS r
JOIN job_envelopes AS v ON v.job_seq = r.value ->> 0
