-- Webhook $1, if it is tenant $2's (NULL: anybody's).
SELECT w.id, w.tenant, w.url, w.events, w.filter, w.metadata, w.secret, w.old_secret, w.old_until, w.active, w.since,
       w.created_at, w.updated_at
FROM webhooks AS w
WHERE w.id = $1 AND ($2 IS NULL OR w.tenant = $2)
{lock}
