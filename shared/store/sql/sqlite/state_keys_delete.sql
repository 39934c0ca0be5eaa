-- Deletes keys. $1: JSON [[scope, name], …]. Differs from PostgreSQL: json_each.
DELETE FROM state_keys
WHERE (scope, name) IN (SELECT r.value ->> 0, r.value ->> 1 FROM json_each($1) AS r)
