-- What the clients sent. $1: JSON rows. Differs from PostgreSQL: json_each.
INSERT INTO job_envelopes (job_seq, retry, args, meta, options, extra, parent_results)
SELECT r.value ->> 0, r.value ->> 1, r.value ->> 2, r.value ->> 3, r.value ->> 4, r.value ->> 5, r.value ->> 6
FROM json_each($1) AS r
