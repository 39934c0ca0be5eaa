-- Calls that others stand for. Differs from SQLite: an array per column.
INSERT INTO stubs (job_seq, call_id, of_call)
SELECT * FROM unnest($1, $2, $3)
