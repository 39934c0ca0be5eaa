-- What the clients sent. Differs from SQLite: an array per column.
INSERT INTO job_envelopes (job_seq, retry, args, meta, options, extra)
SELECT * FROM unnest($1, $2, $3, $4, $5, $6)
