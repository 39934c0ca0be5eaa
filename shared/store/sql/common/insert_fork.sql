-- An engagement that goes on from a turn of another one.
INSERT INTO forks (engagement_seq, parent_id, at_turn, phase, live_tools, changes, created_at)
VALUES ($1, $2, $3, $4, $5, $6, $7)
