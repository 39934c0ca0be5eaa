-- Registered agents. $1 name; NULL matches all.
SELECT a.name, d.digest, d.definition, a.source, a.updated_at, a.tenants
FROM agents AS a
JOIN agent_definitions AS d ON d.digest = a.digest
WHERE $1 IS NULL OR a.name = $1
ORDER BY a.name
