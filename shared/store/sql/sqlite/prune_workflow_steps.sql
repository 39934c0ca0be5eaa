-- Deletes the steps of workflows. $1: JSON [[seq], …]. Differs from PostgreSQL: json_each.
DELETE FROM workflow_steps WHERE workflow_seq IN (SELECT r.value ->> 0 FROM json_each($1) AS r)
