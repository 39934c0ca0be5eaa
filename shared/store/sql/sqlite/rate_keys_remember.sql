-- What jobs ask of limits. Rows: name, asked, concurrency, rate, period_ms, throttle_ms. An operator's own stands.
-- $1: JSON rows. Differs from PostgreSQL: json_each.
INSERT INTO rate_keys (name, asked, concurrency, rate, period_ms, throttle_ms)
SELECT r.value ->> 0, r.value ->> 1, r.value ->> 2, r.value ->> 3, r.value ->> 4, r.value ->> 5
FROM json_each($1) AS r WHERE true
ON CONFLICT (name) DO UPDATE
SET asked       = excluded.asked,
    concurrency = CASE WHEN rate_keys.overridden = 1 THEN rate_keys.concurrency ELSE excluded.concurrency END,
    rate        = CASE WHEN rate_keys.overridden = 1 THEN rate_keys.rate ELSE excluded.rate END,
    period_ms   = CASE WHEN rate_keys.overridden = 1 THEN rate_keys.period_ms ELSE excluded.period_ms END,
    throttle_ms = CASE WHEN rate_keys.overridden = 1 THEN rate_keys.throttle_ms ELSE excluded.throttle_ms END
