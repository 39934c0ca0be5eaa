-- What registered agents mean. $1: names. Differs from SQLite: an array.
SELECT d.digest, d.definition
FROM agents AS a
JOIN agent_definitions AS d ON d.digest = a.digest
WHERE a.name = ANY($1)
