-- Adds a commit that writes events. Differs from SQLite: it gets its place in the order of events later
-- (insert_numbered_commits.sql).
INSERT INTO new_commits (id)
SELECT r.id FROM unnest($1) AS r (id)
