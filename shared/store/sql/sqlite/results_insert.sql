-- Results. $1: JSON rows. Differs from PostgreSQL: json_each.
INSERT INTO job_results (job_seq, result)
SELECT r.value ->> 0, r.value ->> 1 FROM json_each($1) AS r
