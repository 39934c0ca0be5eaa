-- The limits of these tenants' pushes. No other transaction enqueues for them until this one ends.
SELECT t.tenant, t.max_queue_depth, t.max_scheduled, t.enqueue_rate, t.enqueue_period_ms, t.window_at, t.enqueued
FROM tenant_limits AS t
WHERE t.tenant {in: tenants}
ORDER BY t.tenant
{lock}
