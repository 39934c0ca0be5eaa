-- What these tenants may enqueue. Nobody else enqueues for them until this transaction ends.
-- $1: JSON rows. Differs from PostgreSQL: json_each, and there the rows are locked.
SELECT t.tenant, t.max_queue_depth, t.max_scheduled, t.enqueue_rate, t.enqueue_period_ms, t.window_at, t.enqueued
FROM json_each($1) AS r
JOIN tenant_limits AS t ON t.tenant = r.value ->> 0
