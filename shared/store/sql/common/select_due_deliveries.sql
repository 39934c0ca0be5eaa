-- Deliveries whose time has come at $1, at most $2, and at most $3 of one webhook; none of the webhooks in the list $4
-- (commas before, between and behind). The webhooks take turns.
SELECT {columns of delivery}
FROM (SELECT p.id, row_number() OVER (PARTITION BY p.webhook_id ORDER BY p.next_at, p.id) AS place
      FROM deliveries AS p
      JOIN webhooks AS w ON w.id = p.webhook_id AND w.active = 1
      WHERE p.state = 'pending' AND p.next_at <= $1 AND $4 NOT LIKE '%,' || p.webhook_id || ',%') AS q
JOIN deliveries AS d ON d.id = q.id
WHERE q.place <= $3
ORDER BY q.place, d.next_at, d.id
LIMIT $2
