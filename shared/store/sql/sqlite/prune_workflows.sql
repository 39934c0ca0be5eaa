-- Deletes workflows. $1: JSON [[seq], …]. Differs from PostgreSQL: json_each.
DELETE FROM workflows WHERE seq IN (SELECT r.value ->> 0 FROM json_each($1) AS r)
