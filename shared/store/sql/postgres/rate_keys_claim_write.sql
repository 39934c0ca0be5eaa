-- What a claim used of limits. Rows: name, window_at, started, next_at, booked_at, waiting, opens_at.
-- Differs from SQLite: an array per column.
UPDATE rate_keys
SET window_at = r.window_at,
    started   = r.started,
    next_at   = r.next_at,
    booked_at = r.booked_at,
    waiting   = r.waiting,
    opens_at  = r.opens_at
FROM unnest($1, $2, $3, $4, $5, $6, $7) AS r (name, window_at, started, next_at, booked_at, waiting, opens_at)
WHERE rate_keys.name = r.name
