-- After which number nothing has happened yet. Differs from PostgreSQL: the newest event's.
SELECT coalesce(max(v.tx), 0) AS tx FROM journal AS v
