UPDATE deliveries
--- update_repeated_delivery
-- Delivery $1 of webhook $2 is posted anew at $3, with all its attempts.
SET state = 'pending', next_at = $3, attempts = 0, ended_at = NULL
WHERE id = $1 AND webhook_id = $2
--- update_settled_delivery
-- The outcome of attempt $2 of delivery $1. Changes nothing when another attempt has begun since.
SET state = $3, next_at = $4, status = $5, error = $6, ended_at = $7
WHERE id = $1 AND attempts = $2 AND state = 'pending'
--- update_taken_deliveries
-- Deliveries that are about to be posted: no process takes them before $2.
SET next_at = $2, attempts = attempts + 1
WHERE state = 'pending' AND id {in: ids}
