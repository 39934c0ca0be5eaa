-- Delivery $1 of webhook $2 is posted anew at $3, with all its attempts.
UPDATE deliveries
SET state = 'pending', next_at = $3, attempts = 0, ended_at = NULL
WHERE id = $1 AND webhook_id = $2
