-- The standbys of this server, and whether commits wait for one. Rows of other roles' processes have no `state` unless the role has
-- pg_monitor. A base backup is no standby.
SELECT current_setting('synchronous_standby_names') AS names,
       current_setting('synchronous_commit') AS mode,
       count(*) FILTER (WHERE state IS DISTINCT FROM 'backup' AND application_name IS DISTINCT FROM 'pg_basebackup') AS standbys,
       count(*) FILTER (WHERE sync_state IN ('sync', 'quorum')) AS synchronous,
       count(*) FILTER (WHERE state IS NULL) AS hidden
FROM pg_stat_replication
