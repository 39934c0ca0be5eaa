-- Deliveries that are due at once, of webhooks that exist. $1: JSON rows. Differs from PostgreSQL: json_each.
INSERT INTO deliveries (id, webhook_id, event_id, event, body, state, next_at, created_at)
SELECT r.value ->> 0, r.value ->> 1, r.value ->> 2, r.value ->> 3, r.value ->> 4, 'pending', r.value ->> 5, r.value ->> 5
FROM json_each($1) AS r
WHERE EXISTS (SELECT 1 FROM webhooks AS w WHERE w.id = r.value ->> 1)
