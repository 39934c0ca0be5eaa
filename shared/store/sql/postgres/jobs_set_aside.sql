-- Sets jobs aside whose limit is used up. Rows: seq.
-- Differs from SQLite: an array per column.
UPDATE jobs SET set_aside = 1 FROM unnest($1) AS r (seq) WHERE jobs.seq = r.seq
