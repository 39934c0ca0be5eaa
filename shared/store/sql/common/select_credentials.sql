-- All credentials, without what is secret.
SELECT c.kind, c.subject, c.tool, c.header, c.form, c.updated_at
FROM credentials AS c
ORDER BY c.kind, c.subject, c.tool, c.header
