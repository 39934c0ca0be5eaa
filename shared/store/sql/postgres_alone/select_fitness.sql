-- The state of the database: whether it takes writes, and its settings.
SELECT CAST(pg_is_in_recovery() AS INTEGER)::BIGINT AS standby,
       CAST(current_setting('transaction_read_only') = 'on' AS INTEGER)::BIGINT AS read_only,
       CAST(current_setting('server_version_num') AS BIGINT) AS version,
       CAST(current_setting('synchronous_commit') = 'off' AS INTEGER)::BIGINT AS lossy
