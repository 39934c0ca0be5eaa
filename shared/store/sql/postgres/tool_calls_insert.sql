-- New rows of the tool journal. Differs from SQLite: an array per column.
INSERT INTO tool_calls (call_id, job_seq, engagement_seq, turn, position, name, input, idempotent, state, sends, created_at, started_at)
SELECT * FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
