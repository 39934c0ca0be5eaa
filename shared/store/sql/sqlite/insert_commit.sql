-- Adds a commit that writes events. Differs from PostgreSQL: one writer commits at a time, so it gets its place in the order
-- of events at once.
INSERT INTO commits (id, number)
SELECT r.value ->> 0, (SELECT coalesce(max(c.number), 0) + 1 FROM commits AS c) FROM json_each($1) AS r
