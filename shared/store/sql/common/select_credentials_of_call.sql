-- The credentials of owner ($1, $2) for tool $3, and for every tool ($4).
SELECT c.kind, c.subject, c.tool, c.header, c.prefix, c.form, c.content, c.updated_at
FROM credentials AS c
WHERE c.kind = $1 AND c.subject = $2 AND (c.tool = $3 OR c.tool = $4)
ORDER BY c.tool, c.header
