-- Results. Differs from SQLite: an array per column.
INSERT INTO job_results (job_seq, result)
SELECT * FROM unnest($1, $2)
