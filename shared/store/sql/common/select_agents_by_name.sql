-- The definitions of registered agents.
SELECT d.digest, d.definition, a.tenants
FROM agents AS a
JOIN agent_definitions AS d ON d.digest = a.digest
WHERE a.name {in: names}
