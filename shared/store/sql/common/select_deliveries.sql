-- Deliveries of webhook $1, newest first. $2 state, $3 id; NULL matches all.
SELECT {columns of delivery}
FROM deliveries AS d
WHERE d.webhook_id = $1 AND ($2 IS NULL OR d.state = $2) AND ($3 IS NULL OR d.id = $3)
ORDER BY d.id DESC
LIMIT $4 OFFSET $5
