-- The columns of every table, in their order: whether one holds texts, and its place in the primary key (0: it has none).
-- Differs from SQLite: the catalog, in which partitions are tables, too.
SELECT t.relname::text AS table_name, c.attname::text AS column_name,
       CASE WHEN c.atttypid = 'text'::regtype THEN 1 ELSE 0 END::bigint AS is_text,
       coalesce(array_position(k.indkey::int2[], c.attnum) + 1, 0)::bigint AS key_place
FROM pg_class AS t
JOIN pg_attribute AS c ON c.attrelid = t.oid AND c.attnum > 0 AND NOT c.attisdropped
LEFT JOIN pg_index AS k ON k.indrelid = t.oid AND k.indisprimary
WHERE t.relnamespace = current_schema()::regnamespace AND t.relkind IN ('r', 'p') AND NOT t.relispartition
  AND t.relname <> '_sqlx_migrations' AND c.atttypid IN ('text'::regtype, 'bigint'::regtype)
ORDER BY t.relname, c.attnum
