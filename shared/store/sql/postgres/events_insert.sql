-- Events. Differs from SQLite: an array per column.
INSERT INTO events (stream, seq, job_seq, name, turn, data, at)
SELECT * FROM unnest($1, $2, $3, $4, $5, $6, $7)
