-- New engagements. Differs from SQLite: an array per column.
INSERT INTO engagements (seq, id, agent_name, digest, user_id, user_email, started_at, budget_seq, depth, parent_seq, limited_by,
                         retention_ms)
SELECT * FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
