-- Rows that were inserted, updated or deleted in this database so far, and bytes of the server's write-ahead log.
SELECT d.tup_inserted + d.tup_updated + d.tup_deleted AS rows,
       CAST(pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0') AS BIGINT) AS bytes
FROM pg_stat_database AS d
WHERE d.datname = current_database()
