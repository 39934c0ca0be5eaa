-- Deletes the inheritances of engagements whose last job is gone. $1: seqs. Differs from SQLite: an array.
DELETE FROM inheritances
WHERE engagement_seq = ANY($1)
  AND NOT EXISTS (SELECT 1 FROM jobs AS j WHERE j.engagement_seq = inheritances.engagement_seq)
