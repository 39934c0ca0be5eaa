-- Workers by name. $1 name; NULL matches all.
SELECT w.name, w.instance, w.host, w.pid, w.version, w.queues, w.slots, w.busy, w.state, w.started_at, w.seen_at, w.kind, w.directive
FROM workers AS w
WHERE $1 IS NULL OR w.name = $1
ORDER BY w.name
