-- Makes a webhook that is told of what happens from now on. Differs from PostgreSQL: after the newest event.
INSERT INTO webhooks (id, tenant, url, events, filter, metadata, secret, active, created_at, updated_at, since)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $9, (SELECT coalesce(max(v.tx), 0) FROM journal AS v))
