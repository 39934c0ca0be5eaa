-- What registered agents mean. $1: JSON [[name], …]. Differs from PostgreSQL: json_each.
SELECT d.digest, d.definition
FROM json_each($1) AS r
JOIN agents AS a ON a.name = r.value ->> 0
JOIN agent_definitions AS d ON d.digest = a.digest
