-- Webhooks, oldest first. $1 id, $2 tenant, $3 whether it is active; NULL matches all.
SELECT w.id, w.tenant, w.url, w.events, w.filter, w.metadata, w.secret, w.old_secret, w.old_until, w.active, w.since,
       w.created_at, w.updated_at
FROM webhooks AS w
WHERE ($1 IS NULL OR w.id = $1) AND ($2 IS NULL OR w.tenant = $2) AND ($3 IS NULL OR w.active = $3)
ORDER BY w.created_at, w.id
