-- What jobs want when their limit is used up. Rows: id, on_limit.
-- Differs from SQLite: an array per column.
UPDATE jobs SET on_limit = r.on_limit FROM unnest($1, $2) AS r (id, on_limit) WHERE jobs.id = r.id
