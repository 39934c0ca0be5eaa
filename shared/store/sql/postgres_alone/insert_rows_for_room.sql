-- Whether there is room for four more megabytes. Nothing stays: the table is temporary, and rolled back.
BEGIN;
CREATE TEMPORARY TABLE room (filler TEXT);
INSERT INTO room SELECT repeat('x', 1000) FROM generate_series(1, 4000);
ROLLBACK
