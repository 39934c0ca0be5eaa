-- The oldest transaction that is open for more than a minute in the whole server, among those that this user may see: its
-- database, its process, and its age in seconds.
SELECT coalesce(a.datname, '') AS database, a.pid::bigint AS pid,
       extract(epoch FROM clock_timestamp() - a.xact_start)::bigint AS seconds
FROM pg_stat_activity AS a
WHERE a.backend_type = 'client backend' AND a.xact_start < clock_timestamp() - interval '1 minute'
ORDER BY a.xact_start
LIMIT 1
