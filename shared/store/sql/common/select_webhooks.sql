SELECT {columns of webhook}
FROM webhooks AS w
--- select_webhooks
-- Webhooks, oldest first. $1 id, $2 tenant, $3 whether it is active; NULL matches all.
WHERE ($1 IS NULL OR w.id = $1) AND ($2 IS NULL OR w.tenant = $2) AND ($3 IS NULL OR w.active = $3)
ORDER BY w.created_at, w.id
--- lock_webhook
-- Webhook $1, if it is tenant $2's (NULL: any tenant's).
WHERE w.id = $1 AND ($2 IS NULL OR w.tenant = $2)
{lock}
