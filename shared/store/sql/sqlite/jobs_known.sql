-- Which of these ids are taken. $1: JSON [[id], …]. Differs from PostgreSQL: json_each.
SELECT j.id FROM json_each($1) AS r JOIN jobs AS j ON j.id = r.value ->> 0
