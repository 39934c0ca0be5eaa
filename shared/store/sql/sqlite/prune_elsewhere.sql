-- Deletes what agents elsewhere do for jobs that are pruned. $1: JSON [[seq], …]. Differs from PostgreSQL: json_each.
DELETE FROM elsewhere WHERE job_seq IN (SELECT r.value ->> 0 FROM json_each($1) AS r)
