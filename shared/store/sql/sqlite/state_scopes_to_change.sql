-- Versions of scopes, to be changed. $1: JSON [[name], …]. Differs from PostgreSQL: json_each, and there the rows are locked.
SELECT s.name, s.version
FROM json_each($1) AS r
JOIN state_scopes AS s ON s.name = r.value ->> 0
