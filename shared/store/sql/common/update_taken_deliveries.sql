-- Deliveries that are about to be posted: no process takes them before $2.
UPDATE deliveries
SET next_at = $2, attempts = attempts + 1
WHERE state = 'pending' AND id {in: ids}
