-- Deletes what is known of jobs that worked for others. $1: JSON [[seq], …]. Differs from PostgreSQL: json_each.
DELETE FROM delegations WHERE job_seq IN (SELECT r.value ->> 0 FROM json_each($1) AS r)
