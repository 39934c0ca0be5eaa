-- What a claim used of limits. Rows: name, window_at, started, next_at, booked_at, waiting, opens_at.
-- $1: JSON rows. Differs from PostgreSQL: json_each.
UPDATE rate_keys
SET window_at = r.value ->> 1,
    started   = r.value ->> 2,
    next_at   = r.value ->> 3,
    booked_at = r.value ->> 4,
    waiting   = r.value ->> 5,
    opens_at  = r.value ->> 6
FROM json_each($1) AS r
WHERE rate_keys.name = r.value ->> 0
