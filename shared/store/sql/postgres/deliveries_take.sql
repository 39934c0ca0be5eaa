-- These are about to be posted: nobody takes them before $2. $1: ids. Differs from SQLite: an array.
UPDATE deliveries
SET next_at = $2, attempts = attempts + 1
WHERE state = 'pending' AND id = ANY($1)
