-- After which number nothing has happened yet. Differs from SQLite: transactions under way count as not yet happened.
SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint - 1 AS tx
