-- What a claim used of queues. Rows: name, pass, claims, window_at, started, next_at, opens_at.
-- Differs from SQLite: an array per column.
UPDATE queues
SET pass      = r.pass,
    claims    = r.claims,
    window_at = r.window_at,
    started   = r.started,
    next_at   = r.next_at,
    opens_at  = r.opens_at
FROM unnest($1, $2, $3, $4, $5, $6, $7) AS r (name, pass, claims, window_at, started, next_at, opens_at)
WHERE queues.name = r.name
