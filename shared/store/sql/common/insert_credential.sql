-- Keeps a credential: owner ($1, $2), tool $3, header $4, what stands before the secret $5, its form $6, the secret or where it is
-- $7, since $8.
INSERT INTO credentials (kind, subject, tool, header, prefix, form, content, updated_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
ON CONFLICT (kind, subject, tool, header) DO UPDATE
SET prefix     = excluded.prefix,
    form       = excluded.form,
    content    = excluded.content,
    updated_at = excluded.updated_at
