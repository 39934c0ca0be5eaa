-- Which of these artifacts are kept. $1: JSON [[id], …]. Differs from PostgreSQL: json_each.
SELECT a.id FROM artifacts AS a WHERE a.id IN (SELECT r.value ->> 0 FROM json_each($1) AS r)
