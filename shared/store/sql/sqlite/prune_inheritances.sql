-- Deletes the inheritances of jobs that are pruned. $1: JSON [[seq], …]. Differs from PostgreSQL: json_each.
DELETE FROM inheritances WHERE engagement_seq IN (SELECT r.value ->> 0 FROM json_each($1) AS r)
