-- What a claim used of queues. Rows: name, pass, claims, window_at, started, next_at, opens_at.
-- $1: JSON rows. Differs from PostgreSQL: json_each.
UPDATE queues
SET pass      = r.value ->> 1,
    claims    = r.value ->> 2,
    window_at = r.value ->> 3,
    started   = r.value ->> 4,
    next_at   = r.value ->> 5,
    opens_at  = r.value ->> 6
FROM json_each($1) AS r
WHERE queues.name = r.value ->> 0
