-- Sets jobs aside whose limit is used up. Rows: seq.
-- $1: JSON rows. Differs from PostgreSQL: json_each.
UPDATE jobs SET set_aside = 1 FROM json_each($1) AS r WHERE jobs.seq = r.value ->> 0
