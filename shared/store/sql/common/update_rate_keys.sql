UPDATE rate_keys
--- update_claimed_rate_keys
-- The use of limits by a claim.
SET window_at = r.window_at,
    started   = r.started,
    next_at   = r.next_at,
    booked_at = r.booked_at,
    waiting   = r.waiting,
    opens_at  = r.opens_at
FROM {rows: name, window_at, started, next_at, booked_at, waiting, opens_at}
WHERE rate_keys.name = r.name
--- update_opened_rate_keys
-- Limits whose time has come at $1: the waiting jobs are released once.
SET opens_at = NULL WHERE opens_at <= $1
--- update_restored_rate_key
-- The limit that jobs named last, in place of the operator's.
SET overridden = 0, concurrency = $2, rate = $3, period_ms = $4, throttle_ms = $5, next_at = 0
WHERE name = $1
