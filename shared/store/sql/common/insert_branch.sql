-- A job that was forked or merged from others.
INSERT INTO branches (job_seq, id, name, root_seq, parent_seq, at_turn, created_at)
VALUES ($1, $2, $3, $4, $5, $6, $7)
