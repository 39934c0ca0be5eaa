-- Writes a worker's beat, unless another instance of its name was seen after $12. One that was seen after $13, in
-- the future, beat before the clock stepped back. A directive is for one instance.
INSERT INTO workers (name, instance, host, pid, version, queues, slots, busy, state, started_at, seen_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
ON CONFLICT (name) DO UPDATE
SET instance = excluded.instance, host = excluded.host, pid = excluded.pid, version = excluded.version,
    queues = excluded.queues, slots = excluded.slots, busy = excluded.busy, state = excluded.state,
    started_at = excluded.started_at, seen_at = excluded.seen_at, kind = 'own',
    directive = CASE WHEN workers.instance = excluded.instance THEN workers.directive END
WHERE workers.instance = excluded.instance OR workers.seen_at <= $12 OR workers.seen_at > $13
RETURNING directive
