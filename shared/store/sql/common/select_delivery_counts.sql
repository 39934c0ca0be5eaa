-- How many deliveries of webhook $1 there are. $2 state; NULL matches all.
SELECT count(*) AS deliveries
FROM deliveries AS d
WHERE d.webhook_id = $1 AND ($2 IS NULL OR d.state = $2)
