-- Deliveries that are due at once, of webhooks that exist.
INSERT INTO deliveries (id, webhook_id, event_id, event, body, state, next_at, created_at)
SELECT r.id, r.webhook_id, r.event_id, r.event, r.body, 'pending', r.at, r.at
FROM {rows: id, webhook_id, event_id, event, body, at}
WHERE EXISTS (SELECT 1 FROM webhooks AS w WHERE w.id = r.webhook_id)
