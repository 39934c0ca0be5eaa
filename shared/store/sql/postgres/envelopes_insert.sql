-- What the clients sent. Differs from SQLite: an array per column.
INSERT INTO job_envelopes (job_seq, retry, args, meta, options, extra, parent_results)
SELECT * FROM unnest($1, $2, $3, $4, $5, $6, $7)
