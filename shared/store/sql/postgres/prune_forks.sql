-- Deletes the forks of engagements whose last job is gone. $1: seqs. Differs from SQLite: an array.
DELETE FROM forks
WHERE engagement_seq = ANY($1)
  AND NOT EXISTS (SELECT 1 FROM jobs AS j WHERE j.engagement_seq = forks.engagement_seq)
