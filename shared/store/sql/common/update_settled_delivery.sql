-- What became of attempt $2 of delivery $1. Changes nothing when another attempt has begun since.
UPDATE deliveries
SET state = $3, next_at = $4, status = $5, error = $6, ended_at = $7
WHERE id = $1 AND attempts = $2 AND state = 'pending'
