-- Makes a webhook that receives what happens from now on.
INSERT INTO webhooks (id, tenant, url, events, filter, metadata, secret, active, created_at, updated_at, since)
SELECT r.*, r.updated_at, (SELECT coalesce(max(c.number), 0) FROM commits AS c) FROM {rows: id, tenant, url, events, filter, metadata, secret, active, updated_at}
