-- Closed batches that ended before $1.
DELETE FROM batches WHERE ended_at < $1
