-- Writes the state $2 of the breaker $1: failures $3, open until $4, next look at its waiting jobs at $5, changed at $6.
UPDATE breakers SET state = $2, failures = $3, open_until = $4, release_at = $5, changed_at = $6 WHERE name = $1
