-- What a claim used of limits.
UPDATE rate_keys
SET window_at = r.window_at,
    started   = r.started,
    next_at   = r.next_at,
    booked_at = r.booked_at,
    waiting   = r.waiting,
    opens_at  = r.opens_at
FROM {rows: name, window_at, started, next_at, booked_at, waiting, opens_at}
WHERE rate_keys.name = r.name
