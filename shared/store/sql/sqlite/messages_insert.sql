-- Messages. $1: JSON rows. Differs from PostgreSQL: json_each.
INSERT INTO messages (engagement_seq, seq, job_seq, turn, message, created_at)
SELECT r.value ->> 0, r.value ->> 1, r.value ->> 2, r.value ->> 3, r.value ->> 4, r.value ->> 5
FROM json_each($1) AS r
