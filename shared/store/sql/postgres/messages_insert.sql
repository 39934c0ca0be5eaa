-- Messages. Differs from SQLite: an array per column.
INSERT INTO messages (engagement_seq, seq, job_seq, turn, message, created_at)
SELECT * FROM unnest($1, $2, $3, $4, $5, $6)
