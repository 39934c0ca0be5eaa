-- Adds a commit that writes events. Differs from PostgreSQL: one writer makes the ids, so they are the order of events.
INSERT INTO commits (number)
SELECT r.id FROM {rows: id}
