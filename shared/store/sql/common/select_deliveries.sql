-- Deliveries of webhook $1, newest first. $2 state, $3 id, $6 the delivery that they follow; NULL matches all.
SELECT {columns of delivery}
FROM deliveries AS d
WHERE d.webhook_id = $1 AND ($2 IS NULL OR d.state = $2) AND ($3 IS NULL OR d.id = $3) AND ($6 IS NULL OR d.id < $6)
ORDER BY d.id DESC
LIMIT $4 OFFSET $5
