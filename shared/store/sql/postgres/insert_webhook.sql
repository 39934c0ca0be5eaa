-- Makes a webhook that is told of what happens from now on. Differs from SQLite: from this transaction on.
INSERT INTO webhooks (id, tenant, url, events, filter, metadata, secret, active, created_at, updated_at, since)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $9, pg_current_xact_id()::text::bigint - 1)
