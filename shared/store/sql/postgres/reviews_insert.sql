-- Reviews. Differs from SQLite: an array per column.
INSERT INTO reviews (id, engagement_seq, job_seq, turn, call_id, kind, reviewer, question, arguments_hash, created_at,
                     deadline_at, plan, members, remind_at, asked, state)
SELECT r.*, 'open' FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15) AS r
