-- Deletes the journal of streams whose last job is gone. $1: seqs. Differs from SQLite: an array.
DELETE FROM journal
WHERE stream = ANY($1)
  AND NOT EXISTS (SELECT 1 FROM jobs AS j WHERE j.engagement_seq = journal.stream)
