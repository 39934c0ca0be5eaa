-- Deliveries that are due at once, of webhooks that exist. Differs from SQLite: an array per column.
INSERT INTO deliveries (id, webhook_id, event_id, event, body, state, next_at, created_at)
SELECT r.id, r.webhook_id, r.event_id, r.event, r.body, 'pending', r.at, r.at
FROM unnest($1, $2, $3, $4, $5, $6) AS r (id, webhook_id, event_id, event, body, at)
WHERE EXISTS (SELECT 1 FROM webhooks AS w WHERE w.id = r.webhook_id)
