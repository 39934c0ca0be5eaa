-- A worker over HTTP is heard of. What it does not say stays as it was. A name that one of our own workers has is not
-- taken from it.
INSERT INTO workers (name, instance, host, pid, version, queues, slots, busy, state, started_at, seen_at, kind)
VALUES ($1, '', '', 0, '', '[]', 0, coalesce($2, 0), coalesce($3, 'running'), $4, $4, 'http')
ON CONFLICT (name) DO UPDATE
SET busy = coalesce($2, workers.busy), state = coalesce($3, workers.state), seen_at = $4
WHERE workers.kind = 'http'
