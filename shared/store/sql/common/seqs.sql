-- The highest seq of each table whose rows are numbered by the writer.
SELECT (SELECT coalesce(max(seq), 0) FROM jobs),
       (SELECT coalesce(max(seq), 0) FROM engagements),
       (SELECT coalesce(max(seq), 0) FROM budgets)
