-- What jobs reserve. Differs from SQLite: an array per column.
INSERT INTO reservations (job_seq, budget_seq, tokens, money)
SELECT * FROM unnest($1, $2, $3, $4)
