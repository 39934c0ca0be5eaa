-- The content of artifact $1.
SELECT c.tenant, c.digest, c.content
FROM artifacts AS a
JOIN artifact_contents AS c ON c.tenant = a.tenant AND c.digest = a.digest
WHERE a.id = $1
