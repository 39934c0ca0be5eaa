-- Deletes the artifacts of streams whose last job is gone. $1: seqs. Differs from SQLite: an array.
DELETE FROM artifacts
WHERE engagement_seq = ANY($1)
  AND NOT EXISTS (SELECT 1 FROM jobs AS j WHERE j.engagement_seq = artifacts.engagement_seq)
