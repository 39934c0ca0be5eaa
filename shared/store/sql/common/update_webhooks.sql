UPDATE webhooks
--- update_webhook
-- Writes what can be changed of a webhook; one that was inactive and is active now receives what happens from now
-- on.
SET url = r.url, events = r.events, filter = r.filter, metadata = r.metadata, secret = r.secret, old_secret = r.old_secret,
    old_until = r.old_until, updated_at = r.updated_at,
    since = CASE WHEN webhooks.active = 0 AND r.active = 1 THEN (SELECT coalesce(max(c.number), 0) FROM commits AS c) ELSE webhooks.since END,
    active = r.active
FROM {rows: id, url, events, filter, metadata, secret, old_secret, old_until, active, updated_at}
WHERE webhooks.id = r.id
--- update_gone_webhook
-- The receiver of webhook $1 said at $2 that it is gone for good.
SET active = 0, updated_at = $2 WHERE id = $1
