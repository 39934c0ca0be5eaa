-- Deliveries of webhooks that exist.
INSERT INTO deliveries (id, webhook_id, event_id, event, body, state, next_at, created_at)
SELECT r.* FROM {rows: id, webhook_id, event_id, event, body, state, next_at, created_at}
WHERE EXISTS (SELECT 1 FROM webhooks AS w WHERE w.id = r.webhook_id)
