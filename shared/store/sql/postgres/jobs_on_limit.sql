-- Jobs that do not wait when their limit is used up. Rows: seq.
-- Differs from SQLite: an array.
SELECT j.seq, j.on_limit FROM jobs AS j WHERE j.seq = ANY($1) AND j.on_limit IS NOT NULL
