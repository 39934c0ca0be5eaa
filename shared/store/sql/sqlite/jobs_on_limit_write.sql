-- What jobs want when their limit is used up. Rows: id, on_limit.
-- $1: JSON rows. Differs from PostgreSQL: json_each.
UPDATE jobs SET on_limit = r.value ->> 1 FROM json_each($1) AS r WHERE jobs.id = r.value ->> 0
