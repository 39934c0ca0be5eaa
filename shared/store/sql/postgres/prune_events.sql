-- Deletes the events of streams whose last job is gone. $1: seqs. Differs from SQLite: an array.
DELETE FROM events
WHERE stream = ANY($1)
  AND NOT EXISTS (SELECT 1 FROM jobs AS j WHERE j.engagement_seq = events.stream)
