-- Sets the limits that jobs name. An operator's own limit stays.
INSERT INTO rate_keys {values: name, asked, concurrency, rate, period_ms, throttle_ms}
ON CONFLICT (name) DO UPDATE
SET asked       = excluded.asked,
    concurrency = CASE WHEN rate_keys.overridden = 1 THEN rate_keys.concurrency ELSE excluded.concurrency END,
    rate        = CASE WHEN rate_keys.overridden = 1 THEN rate_keys.rate ELSE excluded.rate END,
    period_ms   = CASE WHEN rate_keys.overridden = 1 THEN rate_keys.period_ms ELSE excluded.period_ms END,
    throttle_ms = CASE WHEN rate_keys.overridden = 1 THEN rate_keys.throttle_ms ELSE excluded.throttle_ms END
