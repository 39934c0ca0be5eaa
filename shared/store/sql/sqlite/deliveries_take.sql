-- These are about to be posted: nobody takes them before $2. $1: JSON [[id], …]. Differs from PostgreSQL: json_each.
UPDATE deliveries
SET next_at = $2, attempts = attempts + 1
WHERE state = 'pending' AND id IN (SELECT r.value ->> 0 FROM json_each($1) AS r)
