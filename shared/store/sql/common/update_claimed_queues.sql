-- What a claim used of queues.
UPDATE queues
SET pass      = r.pass,
    claims    = r.claims,
    window_at = r.window_at,
    started   = r.started,
    next_at   = r.next_at,
    opens_at  = r.opens_at
FROM {rows: name, pass, claims, window_at, started, next_at, opens_at}
WHERE queues.name = r.name
