-- What jobs ask of limits. Rows: name, asked, concurrency, rate, period_ms, throttle_ms. An operator's own stands.
-- Differs from SQLite: an array per column.
INSERT INTO rate_keys (name, asked, concurrency, rate, period_ms, throttle_ms)
SELECT * FROM unnest($1, $2, $3, $4, $5, $6)
ON CONFLICT (name) DO UPDATE
SET asked       = excluded.asked,
    concurrency = CASE WHEN rate_keys.overridden = 1 THEN rate_keys.concurrency ELSE excluded.concurrency END,
    rate        = CASE WHEN rate_keys.overridden = 1 THEN rate_keys.rate ELSE excluded.rate END,
    period_ms   = CASE WHEN rate_keys.overridden = 1 THEN rate_keys.period_ms ELSE excluded.period_ms END,
    throttle_ms = CASE WHEN rate_keys.overridden = 1 THEN rate_keys.throttle_ms ELSE excluded.throttle_ms END
