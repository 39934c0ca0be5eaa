-- The columns of every table, in their order: whether one holds texts, and its place in the primary key (0: it has none).
-- Differs from PostgreSQL: the catalog.
SELECT t.name AS table_name, c.name AS column_name, CASE WHEN c.type = 'TEXT' THEN 1 ELSE 0 END AS is_text, c.pk AS key_place
FROM sqlite_schema AS t
JOIN pragma_table_info(t.name) AS c
WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite%' AND t.name <> '_sqlx_migrations'
ORDER BY t.name, c.cid
